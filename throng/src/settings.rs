//! A file of settings for `throng serve`: flags without dashes in front, as YAML. What is in it
//! becomes the defaults of the command line, so that flags and environment go before it.

use crate::cli::{Cli, Command, ServeArgs};
use crate::failure::Failure;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction};
use model::scenario::Mistake;
use saphyr_parser::{Event, Parser, Span};
use std::ffi::OsString;
use std::path::Path;

/// Largest file of settings, bytes.
const FILE_BYTES_MAX: usize = 64 * 1024;
/// Flags that are no settings.
const NO_SETTINGS: [&str; 3] = ["config", "backup", "help"];

/// The command line again, with a file's settings as its defaults.
pub(crate) fn with_file(file: &Path, words: Vec<OsString>) -> Result<ServeArgs, Failure> {
    let unable = |why: String| Failure::usage(format!("cannot read {}: {why}", file.display()));
    let text = std::fs::read(file).map_err(|error| unable(error.to_string()))?;
    if text.len() > FILE_BYTES_MAX {
        return Err(unable(format!("it has {} bytes; at most {FILE_BYTES_MAX} are", text.len())));
    }
    let text = String::from_utf8(text).map_err(|_| unable("it is no UTF-8".to_owned()))?;
    let source = Source { name: file.display().to_string(), text: &text };
    let settings = source.read().map_err(|mistake| Failure::mistakes(&[mistake]))?;
    let mistakes: Vec<Mistake> =
        settings.iter().filter_map(|setting| source.check(setting, &settings)).collect();
    if !mistakes.is_empty() {
        return Err(Failure::mistakes(&mistakes));
    }
    let grammar = Cli::grammar().mut_subcommand("serve", |serve| {
        settings.into_iter().fold(serve, |serve, setting| {
            let values: Vec<String> = setting.values.into_iter().map(|value| value.text).collect();
            let id = setting.key.text.replace('-', "_");
            serve.mut_arg(id, |arg| arg.default_values(values))
        })
    });
    match Cli::read(grammar, words).map(|cli| cli.command) {
        Ok(Command::Serve(args)) => Ok(*args),
        Ok(_) => Err(Failure::usage("only `throng serve` has settings")),
        Err(error) => error.exit(),
    }
}

/// A word of the file and where it is.
struct Word {
    text: String,
    span: Span,
}

/// A line of the file: a key and its value or values.
struct Setting {
    key: Word,
    values: Vec<Word>,
}

struct Source<'t> {
    name: String,
    text: &'t str,
}

impl Source<'_> {
    /// Reads a map of words to words, or to lists of them.
    fn read(&self) -> Result<Vec<Setting>, Mistake> {
        const HELP: &str = "write a setting in each line, as in `flush-window: 20ms`";
        let mut settings: Vec<Setting> = Vec::new();
        let (mut key, mut depth) = (None, 0);
        for event in Parser::new_from_str(self.text) {
            let (event, span) = event.map_err(|error| {
                let span = Span::new(*error.marker(), *error.marker());
                self.mistake(&span, format!("this is not YAML: {}", error.info()), HELP)
            })?;
            match event {
                Event::MappingStart(..) if depth == 0 => depth = 1,
                Event::SequenceStart(..) if depth == 1 && key.is_some() => {
                    let values = Vec::new();
                    settings.extend(key.take().map(|key| Setting { key, values }));
                    depth = 2;
                }
                Event::SequenceEnd | Event::MappingEnd => depth -= 1,
                Event::Scalar(text, ..) => {
                    let word = Word { text: text.into_owned(), span };
                    match (depth, key.take()) {
                        (1, None) => key = Some(word),
                        (1, Some(key)) => settings.push(Setting { key, values: vec![word] }),
                        (2, _) => settings.last_mut().map_or((), |last| last.values.push(word)),
                        _ => {
                            let reason = format!("`{}` is no setting", word.text);
                            // An empty file is one empty word.
                            if !word.text.trim_matches(['~', ' ']).is_empty() {
                                return Err(self.mistake(&word.span, reason, HELP));
                            }
                        }
                    }
                }
                Event::MappingStart(..) | Event::SequenceStart(..) | Event::Alias(_) => {
                    let reason = "a setting is a word or a list of words";
                    return Err(self.mistake(&span, reason, HELP));
                }
                _ => {}
            }
        }
        Ok(settings)
    }

    /// What is wrong with a setting, if anything is, by the rules of the command line.
    fn check(&self, setting: &Setting, all: &[Setting]) -> Option<Mistake> {
        let Setting { key, values } = setting;
        let again = all.iter().find(|other| other.key.text == key.text)?;
        if !std::ptr::eq(again, setting) {
            let line = again.key.span.start.line();
            let reason = format!("`{}` is set twice", key.text);
            return Some(self.mistake(&key.span, reason, format!("it is set in line {line}, too")));
        }
        let Some(arg) = arg(&key.text) else {
            return Some(self.mistake(
                &key.span,
                format!("there is no setting `{}`", key.text),
                advice(&key.text),
            ));
        };
        let takes_many = matches!(arg.get_action(), ArgAction::Append);
        if values.len() != 1 && !takes_many {
            let reason = format!("`{}` has one value", key.text);
            return Some(self.mistake(&key.span, reason, arg_help(&arg)));
        }
        values.iter().find_map(|value| {
            let why = wrong(&arg, &key.text, &value.text)?;
            Some(self.mistake(&value.span, why, arg_help(&arg)))
        })
    }

    fn mistake(
        &self,
        span: &Span,
        reason: impl Into<String>,
        suggestion: impl Into<String>,
    ) -> Mistake {
        let line = span.start.line();
        let is_one_line = span.end.line() == line;
        let width = if is_one_line { span.end.col().saturating_sub(span.start.col()) } else { 1 };
        Mistake {
            file: self.name.clone(),
            line: line as u32,
            column: span.start.col() as u32 + 1,
            width: width.max(1) as u32,
            text: self.text.lines().nth(line.saturating_sub(1)).unwrap_or_default().to_owned(),
            reason: reason.into(),
            suggestion: suggestion.into(),
        }
    }
}

/// The flag of that name, if it is a setting.
fn arg(key: &str) -> Option<Arg> {
    if NO_SETTINGS.contains(&key) {
        return None;
    }
    let grammar = Cli::grammar();
    let mut args = grammar.find_subcommand("serve")?.get_arguments();
    args.find(|arg| arg.get_long() == Some(key)).cloned()
}

/// What the command line says of a flag.
fn arg_help(arg: &Arg) -> String {
    arg.get_help().map(ToString::to_string).unwrap_or_default()
}

/// What is meant by a key that is none, as far as the command line can guess.
fn advice(key: &str) -> String {
    let words = ["throng".to_owned(), "serve".to_owned(), format!("--{key}=")];
    let error = Cli::read(Cli::grammar(), words.map(OsString::from)).err();
    let near = error.and_then(|error| match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(flag)) => Some(flag.trim_start_matches('-').to_owned()),
        _ => None,
    });
    match near.filter(|near| !NO_SETTINGS.contains(&near.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`throng serve --help` lists the settings: they are the flags".to_owned(),
    }
}

/// Why a value is none of this flag's, if it is not.
fn wrong(arg: &Arg, key: &str, value: &str) -> Option<String> {
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        let help = || format!("`{value}` is neither true nor false");
        return (!["true", "false"].contains(&value)).then(help);
    }
    let words = ["throng".to_owned(), "serve".to_owned(), format!("--{key}={value}")];
    let error = Cli::read(Cli::grammar(), words.map(OsString::from)).err()?;
    if error.kind() == ErrorKind::ArgumentConflict {
        return None; // with the environment, which goes before the file
    }
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    Some(first.trim_start_matches("error: ").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, String> {
        let source = Source { name: "chat.yaml".to_owned(), text };
        let settings = source.read().map_err(|mistake| mistake.to_string())?;
        let mistakes: Vec<String> = settings
            .iter()
            .filter_map(|setting| source.check(setting, &settings))
            .map(|mistake| mistake.to_string())
            .collect();
        if !mistakes.is_empty() {
            return Err(mistakes.join(""));
        }
        let values = |setting: &Setting| {
            let values: Vec<&str> = setting.values.iter().map(|word| word.text.as_str()).collect();
            (setting.key.text.clone(), values.join(" "))
        };
        Ok(settings.iter().map(values).collect())
    }

    #[test]
    fn files_are_maps_of_settings() {
        let rows: &[(&str, &[(&str, &str)])] = &[
            ("", &[]),
            ("# nothing\n", &[]),
            ("{}\n", &[]),
            ("flush-window: 20ms\nhistory: 7\n", &[("flush-window", "20ms"), ("history", "7")]),
            ("registration: off\nexpose: true\n", &[("registration", "off"), ("expose", "true")]),
            ("origin: [http://a, 'https://b:1']\n", &[("origin", "http://a https://b:1")]),
            ("origin:\n  - http://a\n", &[("origin", "http://a")]),
            ("data: /var/lib/x y\n", &[("data", "/var/lib/x y")]),
        ];
        for (text, expect) in rows {
            let expect = expect.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            assert_eq!(read(text), Ok(expect), "{text}");
        }
    }

    #[test]
    fn mistakes_have_a_place_and_advice() {
        let rows = [
            ("flush-windo: 1ms\n", "chat.yaml:1:1", "did you mean `flush-window`?"),
            ("quux: 1\n", "chat.yaml:1:1", "throng serve --help"),
            ("history: 1\nflush-window: 20\n", "chat.yaml:2:15", "write it as 20us, 20ms or 1s"),
            ("presence: loud\n", "chat.yaml:1:11", "eager, batched or off"),
            ("history: many\n", "chat.yaml:1:10", "invalid"),
            ("history:\n", "chat.yaml:1:", "history"),
            ("registration: no\n", "chat.yaml:1:15", "on or off"),
            ("expose: maybe\n", "chat.yaml:1:9", "neither true nor false"),
            ("origin: [http://a, b]\n", "chat.yaml:1:20", "https://chat.example"),
            ("history: 1\nhistory: 2\n", "chat.yaml:2:1", "line 1"),
            ("history: [1, 2]\n", "chat.yaml:1:1", "one value"),
            ("history: {a: 1}\n", "chat.yaml:1:10", "a word or a list of words"),
            ("config: other.yaml\n", "chat.yaml:1:1", "no setting `config`"),
            ("backup: file\n", "chat.yaml:1:1", "no setting `backup`"),
            ("help: true\n", "chat.yaml:1:1", "no setting `help`"),
            ("just words\n", "chat.yaml:1:1", "flush-window: 20ms"),
            ("- history\n", "chat.yaml:1:1", "flush-window: 20ms"),
            ("history: [1\n", "chat.yaml:", "not YAML"),
            ("pin: -1\n", "chat.yaml:1:6", "a processor is a number from 0"),
            ("log: yaml\n", "chat.yaml:1:6", "off, text or json"),
        ];
        for (text, place, words) in rows {
            let error = read(text).expect_err(text);
            let error = error.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(error.contains(place) && error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn every_setting_is_a_variable_of_the_environment() {
        let grammar = Cli::grammar();
        let serve = grammar.find_subcommand("serve").unwrap();
        let mut count = 0;
        for arg in serve.get_arguments() {
            let long = arg.get_long().unwrap();
            let expect = format!("THRONG_SERVE_{}", long.to_uppercase().replace('-', "_"));
            assert_eq!(arg.get_env().unwrap(), expect.as_str(), "{long}");
            count += 1;
        }
        assert!(count > 20);
    }
}
