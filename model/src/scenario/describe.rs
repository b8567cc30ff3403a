//! A plan in words.

use crate::Plan;

/// What `throng plan` prints.
pub fn describe(plan: &Plan) -> String {
    format!("{}\n", plan.name)
}
