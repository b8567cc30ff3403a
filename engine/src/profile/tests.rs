//! Profiles of real processes, where the profilers are installed, and what goes wrong.

use super::*;
