//! What a target's folder says: `target.yaml`, and the blanks it leaves to be filled in.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Largest `target.yaml`, bytes.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// A server throng can start.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// One line for `throng targets`.
    pub about: String,
    /// The protocol spoken at `url`.
    pub protocol: String,
    /// Programs it needs.
    #[serde(default)]
    pub needs: Vec<Need>,
    /// What is made once before it can be started.
    #[serde(default)]
    pub prepare: Option<Prepare>,
    /// How many of it run beside each other.
    #[serde(default = "one")]
    pub instances: String,
    /// Names of the ports it listens on; free ones are chosen for each start.
    #[serde(default)]
    pub ports: Vec<String>,
    /// The user it runs as when throng is root.
    #[serde(default)]
    pub user: Option<String>,
    /// Files of the folder that are copied to where it runs.
    #[serde(default)]
    pub files: Vec<String>,
    /// Environment variables, blanks filled in.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The command and its arguments, blanks filled in.
    pub command: Vec<String>,
    /// How it is known to be ready.
    pub ready: Ready,
    /// What is done with it when it is ready, before anybody comes: accounts, for instance.
    #[serde(default)]
    pub populate: Option<Populate>,
    /// Where it is reached, blanks filled in.
    pub url: String,
    /// Options for the protocol, blanks filled in.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// What is said to it, for a protocol that leaves this to the application; without blanks.
    #[serde(default)]
    pub dialect: Option<serde_json::Value>,
    /// What can be set in a scenario.
    #[serde(default)]
    pub knobs: BTreeMap<String, Knob>,
    /// How its version is found out.
    #[serde(default)]
    pub version: Option<Version>,
    /// Its log, for last words.
    #[serde(default)]
    pub log: Option<String>,
    /// Its own figures.
    #[serde(default)]
    pub stats: Option<Stats>,
    /// Where it publishes metrics in Prometheus' text format, blanks filled in.
    #[serde(default)]
    pub metrics: Option<String>,
    /// How it is stopped.
    #[serde(default)]
    pub stop: Stop,
    /// The folder; empty for a target that is part of throng.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// A program that must be installed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// Its name on the path.
    pub command: String,
    /// The command that installs it.
    pub install: String,
    /// It is needed only if these knobs have these values.
    #[serde(default)]
    pub when: BTreeMap<String, String>,
}

/// What is made once before a target can be started, in a cached folder known as `{cache}`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepare {
    /// Files of the target's folder that it is made of: others make another cache.
    #[serde(default)]
    pub files: Vec<String>,
    /// The command and its arguments, started in the cache beside copies of the files.
    pub command: Vec<String>,
    /// How long that may take.
    #[serde(deserialize_with = "duration")]
    pub within: Duration,
}

/// What is done with a server that runs, before anybody comes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Populate {
    /// The command and its arguments, blanks filled in, started like the target: in its folder, as
    /// its user, with its environment.
    pub command: Vec<String>,
    /// How long that may take.
    #[serde(deserialize_with = "duration")]
    pub within: Duration,
}

/// How a target is known to be ready.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// It listens on this port itself, or a process that it has started.
    pub port: String,
    /// How long that may take.
    #[serde(deserialize_with = "duration")]
    pub within: Duration,
}

/// Something that can be set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knob {
    /// One line of explanation.
    #[serde(default)]
    pub about: String,
    /// The value unless the scenario says otherwise.
    pub default: String,
    /// The values there are; empty if any will do.
    #[serde(default)]
    pub values: Values,
}

impl Knob {
    /// Whether its values stand for texts of target.yaml.
    fn has_texts(&self) -> bool {
        self.values.0.iter().any(|(value, text)| value != text)
    }
}

/// The values of a knob: a list, or a map that says what the blank is filled with for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(Vec<(String, String)>);

impl Values {
    /// Whether any value will do.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them in a line.
    pub fn line(&self) -> String {
        self.0.iter().map(|(value, _)| value.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// What the blank is filled with for a value; `None` if there is no such value.
    fn text<'a>(&'a self, value: &'a str) -> Option<&'a str> {
        match self.is_empty() {
            true => Some(value),
            false => self.0.iter().find(|(name, _)| name == value).map(|(_, text)| text.as_str()),
        }
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Values, D::Error> {
        struct ListOrMap;
        impl<'de> Visitor<'de> for ListOrMap {
            type Value = Values;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of values, or a map from each to its text")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Values, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element::<String>()? {
                    values.push((value.clone(), value));
                }
                Ok(Values(values))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
                let mut values = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    values.push(entry);
                }
                Ok(Values(values))
            }
        }
        deserializer.deserialize_any(ListOrMap)
    }
}

/// How a target's version is found out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// Prints it.
    pub command: Vec<String>,
    /// Text before the version in a line of the output (up to a parenthesis, which is left out).
    #[serde(rename = "match")]
    pub pattern: String,
}

/// A target's own figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stats {
    /// Answers with a JSON object of numbers.
    pub url: String,
}

/// How a target is stopped.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// `TERM` or `INT`.
    pub signal: String,
    /// After this it is killed.
    #[serde(deserialize_with = "duration")]
    pub within: Duration,
}

impl Default for Stop {
    fn default() -> Stop {
        Stop { signal: "TERM".into(), within: Duration::from_secs(5) }
    }
}

impl Spec {
    /// Reads the folder's `target.yaml`. The error is advice for the user.
    pub fn read(folder: &Path) -> Result<Spec, String> {
        let path = folder.join("target.yaml");
        let unreadable = |error| format!("{}: {error}", path.display());
        if std::fs::metadata(&path).map_err(unreadable)?.len() > FILE_BYTES_MAX {
            return Err(format!("{}: larger than {FILE_BYTES_MAX} bytes", path.display()));
        }
        let text = std::fs::read_to_string(&path).map_err(unreadable)?;
        let mut spec = Spec::parse(&text, &path.display().to_string())?;
        spec.folder = folder.to_owned();
        Ok(spec)
    }

    /// Reads the text of a `target.yaml`, called `name` in errors.
    pub fn parse(text: &str, name: &str) -> Result<Spec, String> {
        serde_saphyr::from_str(text).map_err(|error| format!("{name}: {error}"))
    }

    /// The values of all knobs. What is no knob is left for the protocol's options; a value that
    /// does not exist is an error with those that do.
    pub fn knobs(
        &self,
        given: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, String> {
        let value = |(name, knob): (&String, &Knob)| {
            let value = given.get(name).unwrap_or(&knob.default);
            match knob.values.text(value) {
                Some(_) => Ok((name.clone(), value.clone())),
                None => Err(format!(
                    "the knob `{name}` cannot be `{value}`; it can be {}",
                    knob.values.line()
                )),
            }
        };
        self.knobs.iter().map(value).collect()
    }

    /// What `{knob.NAME}` stands for, for each knob with its value. There may be blanks in it.
    pub(super) fn knob_blanks(&self, knobs: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let text = |(name, value): (&String, &String)| {
            let text = self.knobs.get(name).and_then(|knob| knob.values.text(value));
            (format!("knob.{name}"), text.unwrap_or(value).to_owned())
        };
        knobs.iter().map(text).collect()
    }

    /// Fills the blanks within texts that knobs stand for. What the user gave stands for itself.
    pub(super) fn fill_texts(&self, blanks: &mut BTreeMap<String, String>) -> Result<(), String> {
        let known = blanks.clone();
        let texts = self.knobs.iter().filter(|(_, knob)| knob.has_texts());
        for (name, _) in texts {
            if let Some(text) = blanks.get_mut(&format!("knob.{name}")) {
                *text = fill(text, &known)?;
            }
        }
        Ok(())
    }

    /// The options for the protocol, as far as they are known before the target is started.
    pub fn foreseen(&self, knobs: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let ports = self.ports.iter().map(|name| (format!("port.{name}"), "1".to_owned()));
        let places = ["throng", "folder", "cache", "dir"].map(|name| (name.into(), ".".into()));
        let blanks: BTreeMap<String, String> =
            self.knob_blanks(knobs).into_iter().chain(ports).chain(places).collect();
        let known =
            |(name, text): (&String, &String)| Some((name.clone(), fill(text, &blanks).ok()?));
        let dialect = self.dialect.iter().map(|said| ("dialect".to_owned(), said.to_string()));
        self.options.iter().filter_map(known).chain(dialect).collect()
    }
}

/// Fills in `{name}` from `blanks`. A blank nobody knows is an error.
pub(super) fn fill(text: &str, blanks: &BTreeMap<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| format!("`{text}` in target.yaml has a `{{` without its `}}`"))?;
        let value = blanks
            .get(name)
            .ok_or_else(|| format!("`{{{name}}}` in target.yaml stands for nothing known"))?;
        out.push_str(before);
        out.push_str(value);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn one() -> String {
    "1".into()
}

/// A duration in target.yaml: whole seconds or milliseconds.
fn duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parse = |number: &str| number.trim().parse::<u64>().ok();
    let millis = match text.strip_suffix("ms") {
        Some(number) => parse(number),
        None => text.strip_suffix('s').and_then(parse).map(|seconds| seconds * 1_000),
    };
    millis.map(Duration::from_millis).ok_or_else(|| {
        serde::de::Error::custom(format!("`{text}` is no duration; write it as 10s or 500ms"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_are_filled_in_or_refused() {
        let blanks = BTreeMap::from([("port.a".to_owned(), "7".to_owned())]);
        assert_eq!(fill("x:{port.a}/{port.a}", &blanks), Ok("x:7/7".into()));
        assert!(fill("{port.b}", &blanks).unwrap_err().contains("port.b"));
        assert!(fill("{port.a", &blanks).is_err());
    }

    #[test]
    fn knobs_have_defaults_and_limits() {
        let text = "about: a\nprotocol: p\ncommand: [c]\nready: {port: x, within: 500ms}\nurl: u\n\
                    knobs: {gc: {default: a, values: [a, b]}}\n";
        let spec = Spec::parse(text, "t").unwrap();
        assert_eq!(spec.ready.within, Duration::from_millis(500));
        let knobs = |value: Option<&str>| {
            let given = value.map(|value| ("gc".to_owned(), value.to_owned()));
            spec.knobs(&given.into_iter().collect())
        };
        assert_eq!(knobs(None).unwrap()["gc"], "a");
        assert_eq!(knobs(Some("b")).unwrap()["gc"], "b");
        assert!(knobs(Some("c")).unwrap_err().contains("a, b"));
        let text = text.replace("[a, b]}", "{b: \"x:{port.p}\", a: y}}");
        let spec = Spec::parse(&text, "t").unwrap();
        let blank = |value: &str| {
            let given = BTreeMap::from([("gc".to_owned(), value.to_owned())]);
            spec.knobs(&given).map(|knobs| spec.knob_blanks(&knobs)["knob.gc"].clone())
        };
        assert_eq!(blank("b").unwrap(), "x:{port.p}");
        assert_eq!(blank("a").unwrap(), "y");
        assert!(blank("y").unwrap_err().contains("b, a"));
        assert!(Spec::parse("about: x\nnonsense: 1\n", "t").unwrap_err().starts_with("t: "));
    }
}
