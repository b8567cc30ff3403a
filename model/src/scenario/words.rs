//! A resolved journey and its parts in words, as short as a scenario has them.

use crate::{
    Accounts, Deed, DeedVerb, Op, Pacer, ProfilePlan, Profiler, Program, RoomChoice, Secret, Span,
    Subject, Text,
};

/// A span of time: `25s`, `100ms`, `1m20s`.
pub(super) fn time(ns: u64) -> String {
    /// Units with the length from which they are used, nanoseconds.
    const UNITS: &[(f64, f64, &str)] = &[
        (7_200e9, 3_600e9, "h"),
        (600e9, 60e9, "m"),
        (1e9, 1e9, "s"),
        (1e6, 1e6, "ms"),
        (1e3, 1e3, "us"),
        (1.0, 1.0, "ns"),
    ];
    let ns = ns as f64;
    match UNITS.iter().find(|(from, ..)| ns >= *from) {
        Some((_, unit, name)) => format!("{}{name}", trim(ns / unit)),
        None => "0s".into(),
    }
}

/// A number with at most three decimals.
pub(super) fn trim(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// A large number with its thousands parted; above a million rounded.
pub(super) fn count(value: f64) -> String {
    if !(0.0..1e15).contains(&value) {
        return "?".into();
    }
    let digits = if value < 10.0 { return trim(value) } else { format!("{value:.0}") };
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn span(span: &Span) -> String {
    match span {
        Span::Fixed(ns) => time(*ns),
        Span::Uniform(low, high) => format!("{}..{}", time(*low), time(*high)),
        Span::Exponential(mean) => format!("exponential {}", time(*mean)),
        Span::LogNormal(median, sigma) => {
            format!("log-normal {} (sigma {})", time(*median), trim(*sigma))
        }
    }
}

/// How people arrive.
pub(super) fn pacer(pacer: &Pacer) -> String {
    match pacer {
        Pacer::AtOnce => "at once".into(),
        Pacer::Constant { rate } => format!("at {}/s", trim(*rate)),
        Pacer::Poisson { rate } => format!("at {}/s poisson", trim(*rate)),
        Pacer::Ramp { from, to, over_s } => {
            format!("at {}/s..{}/s over {}s", trim(*from), trim(*to), trim(*over_s))
        }
        Pacer::Steps { steps } => {
            let one = |(rate, hold): &(f64, f64)| format!("{}/s for {}s", trim(*rate), trim(*hold));
            format!("at {}", steps.iter().map(one).collect::<Vec<_>>().join(" then "))
        }
    }
}

/// Who people log in as; never a password.
pub(super) fn accounts(accounts: &Accounts) -> String {
    match accounts {
        Accounts::File { path } => format!("from {path}"),
        Accounts::Pattern { name, password, first, count } => {
            let last = first + count.saturating_sub(1);
            let named = |n: u32| name.replace("{n}", &n.to_string());
            let secret = match password {
                Secret::Pattern(_) => String::new(),
                Secret::Env(variable) => format!(", password from ${variable}"),
                Secret::File(path) => format!(", password from {path}"),
            };
            match *count {
                1 => format!("{}{secret}", named(*first)),
                _ => format!("{} to {}{secret}", named(*first), named(last)),
            }
        }
    }
}

/// The stages of a journey with their steps.
pub(super) fn stages(program: &Program, rooms: &[String]) -> Vec<(String, String)> {
    let mut stages: Vec<(String, String)> = Vec::new();
    let mut from = 0;
    let mut name = "pace".to_owned();
    for (at, op) in program.ops.iter().enumerate() {
        let Op::Stage(stage) = op else { continue };
        if at > from {
            stages.push((name, steps(program, rooms, from, at)));
        }
        name = program.stages.get(*stage as usize).cloned().unwrap_or_default();
        from = at + 1;
    }
    stages.push((name, steps(program, rooms, from, program.ops.len())));
    stages
}

fn steps(program: &Program, rooms: &[String], from: usize, to: usize) -> String {
    let mut words = Vec::new();
    let mut at = from;
    while at < to {
        let (text, next) = step(program, rooms, at, to);
        words.extend(text);
        at = next.max(at + 1);
    }
    words.join(" · ")
}

/// The words of one step, and the place behind it.
fn step(program: &Program, rooms: &[String], at: usize, to: usize) -> (Option<String>, usize) {
    let text = match &program.ops[at] {
        Op::Do(deed) => words(deed, rooms),
        Op::Wait(wait) => format!("wait {}", span(wait)),
        Op::JoinSome { mean, of } => format!("join {} of {of} rooms", trim(*mean)),
        Op::Gate(gate) => {
            format!("gate {}", program.gates.get(*gate as usize).map_or("", String::as_str))
        }
        Op::Pace(classes) => {
            let one = |(weight, factor): &(u32, f32)| format!("{weight}: waits × {factor}");
            classes.iter().map(one).collect::<Vec<_>>().join(", ")
        }
        Op::Repeat { times, for_ns, every, late_start, end } => {
            let mut law = Vec::new();
            law.extend(times.map(|times| format!("{times} times")));
            law.extend(every.as_ref().map(|every| format!("every {}", span(every))));
            law.extend(for_ns.map(|ns| format!("for {}", time(ns))));
            if times.is_none() && for_ns.is_none() {
                law.push("forever".into());
            }
            let end = (*end as usize).min(to);
            let body = steps(program, rooms, at + 1, end.saturating_sub(1));
            let verb = if *late_start { "talk" } else { "repeat" };
            return (Some(format!("{verb} {} [ {body} ]", law.join(" "))), end);
        }
        Op::Choose(arms) => return choose(program, rooms, arms, to),
        Op::Again(_) | Op::Jump(_) | Op::Stage(_) => return (None, at + 1),
    };
    (Some(text), at + 1)
}

fn choose(
    program: &Program,
    rooms: &[String],
    arms: &[(u32, u32)],
    to: usize,
) -> (Option<String>, usize) {
    let mut end = to;
    let mut words = Vec::new();
    for (i, &(weight, place)) in arms.iter().enumerate() {
        let behind = match arms.get(i + 1) {
            Some(&(_, next)) => next as usize,
            None => end,
        };
        // Every arm ends with a jump to the place behind the choice.
        let jump = match arms.get(i + 1) {
            Some(_) => behind - 1,
            None => last_jump(program, place as usize, end),
        };
        if let Some(Op::Jump(place)) = program.ops.get(jump) {
            end = *place as usize;
        }
        let body = steps(program, rooms, place as usize, jump);
        words.push(format!("{weight}: {}", if body.is_empty() { "nothing" } else { &body }));
    }
    (Some(format!("choose {{ {} }}", words.join(" | "))), end)
}

fn last_jump(program: &Program, from: usize, end: usize) -> usize {
    (from..end)
        .find(|&at| matches!(program.ops[at], Op::Jump(place) if place as usize == at + 1))
        .unwrap_or(end)
}

fn words(deed: &Deed, rooms: &[String]) -> String {
    let verb = match deed.verb {
        DeedVerb::Ask(measure) => measure.name(),
        DeedVerb::Disconnect => "disconnect",
        DeedVerb::Drop => "drop",
    };
    let room = match deed.room {
        None => String::new(),
        Some(RoomChoice::Named(room)) => {
            format!(" {}", rooms.get(room as usize).map_or("?", String::as_str))
        }
        Some(RoomChoice::Own) => " own".into(),
        Some(RoomChoice::Joined) => " joined".into(),
        Some(RoomChoice::Another) => " another".into(),
        Some(RoomChoice::Any) => " any".into(),
        Some(RoomChoice::OneOf { first, count }) => format!(" {}", family(rooms, first, count)),
        Some(RoomChoice::OwnOf { first, count, .. }) => {
            format!(" own of {}", family(rooms, first, count))
        }
    };
    let text = match &deed.text {
        None => String::new(),
        Some(Text::Words(low, high)) if low == high => format!(" {low} words"),
        Some(Text::Words(low, high)) => format!(" {low}..{high} words"),
        Some(Text::Bytes(low, high)) if low == high => format!(" {low} bytes"),
        Some(Text::Bytes(low, high)) => format!(" {low}..{high} bytes"),
        Some(Text::Lines(lines)) => match lines.as_slice() {
            [line] => format!(" \"{}\"", super::unit::short(line)),
            lines => format!(" one of {} lines", lines.len()),
        },
    };
    let limit = if deed.limit > 0 { format!(" {} messages", deed.limit) } else { String::new() };
    format!("{verb}{room}{text}{limit}")
}

/// Lists that go by one name, the first to the last of them.
fn family(rooms: &[String], first: u32, count: u32) -> String {
    let name = |room: u32| rooms.get(room as usize).map_or("?", String::as_str);
    format!("{}..{}", name(first), name(first + count.saturating_sub(1)))
}

/// A profile of a phase.
pub(super) fn profile(profile: &ProfilePlan) -> String {
    let whom = match (&profile.profiler, profile.of) {
        (Profiler::Pprof { url }, _) => format!("from {url}"),
        (_, Subject::Target) => format!("of the target at {} Hz", profile.hz),
        (_, Subject::Generator) => format!("of the generator at {} Hz", profile.hz),
        (_, Subject::Process(pid)) => format!("of process {pid} at {} Hz", profile.hz),
    };
    let length = profile.for_ns.map(|ns| format!(" for {}", time(ns))).unwrap_or_default();
    let after = match profile.after_ns {
        0 => String::new(),
        ns => format!(" after {}", time(ns)),
    };
    format!("profile: {} {whom}{length}{after}", profile.profiler.name())
}
