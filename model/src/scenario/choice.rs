//! Weights: `{94%: …, 6%: …}`, or a list of such pairs, whose weights may be equal.

use super::reader::Reader;
use super::tree::{Node, Place, Value};
use super::unit;

/// Most arms of a choice.
const ARMS_MAX: usize = 1_000;
/// Weights are kept as whole numbers of thousandths, then divided by what they have in common.
const SCALE: f64 = 1_000.0;

/// The arms of a choice with whole weights.
pub(super) fn weights<'n>(
    reader: &mut Reader<'_>,
    node: &'n Node,
    what: &str,
) -> Option<Vec<(u32, &'n Node)>> {
    let pairs = pairs(reader, node, what)?;
    let mut arms: Vec<(f64, bool, Place, &Node)> = Vec::new();
    for (key, value) in pairs {
        let (weight, is_percent) = reader.parsed(key, "a weight", unit::weight)?;
        arms.push((weight, is_percent, key.place, value));
    }
    if arms.is_empty() || arms.len() > ARMS_MAX {
        let reason = format!("{what} needs 1 to {ARMS_MAX} arms");
        reader.wrong(node.place, reason, "as in `{90%: …, 10%: …}`");
        return None;
    }
    let percents = arms.iter().filter(|arm| arm.1).count();
    if let Some(odd) = arms.iter().find(|arm| arm.1 != arms[0].1) {
        let help = "use percentages for all of them, or numbers for all of them";
        reader.wrong(odd.2, format!("{what} mixes percentages and numbers"), help);
        return None;
    }
    let sum: f64 = arms.iter().map(|arm| arm.0).sum();
    if percents > 0 && (sum - 100.0).abs() > 0.01 {
        let reason = format!("the percentages of {what} add up to {sum}, not to 100");
        let last = arms.last().map_or(node.place, |arm| arm.2);
        let rest = 100.0 - (sum - arms.last().map_or(0.0, |arm| arm.0));
        let help = match rest > 0.0 {
            true => format!("did you mean `{rest}%` for the last?"),
            false => "write numbers without `%` for plain proportions".into(),
        };
        reader.wrong(last, reason, help);
        return None;
    }
    let whole: Vec<u64> = arms.iter().map(|arm| ((arm.0 * SCALE).round() as u64).max(1)).collect();
    let common = whole.iter().copied().fold(0, gcd).max(1);
    Some(whole.iter().zip(&arms).map(|(w, arm)| ((w / common) as u32, arm.3)).collect())
}

/// The pairs of a map, or those of a list of maps with one pair each.
fn pairs<'n>(
    reader: &mut Reader<'_>,
    node: &'n Node,
    what: &str,
) -> Option<Vec<(&'n Node, &'n Node)>> {
    let maps = match &node.value {
        Value::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let mut pairs = Vec::new();
    for map in maps {
        let Some(found) = map.map() else {
            let reason = format!("{what} needs weights, not {}", map.kind());
            reader.wrong(map.place, reason, "as in `{90%: …, 10%: …}`");
            return None;
        };
        pairs.extend(found.iter().map(|(key, value)| (key, value)));
    }
    Some(pairs)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
