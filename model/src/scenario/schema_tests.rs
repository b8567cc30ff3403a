//! The JSON Schema agrees with the language: what is planned is valid, and the same keys are known.

use super::tree::{Node, Value};
use super::*;
use serde_json::{Map, Value as Json};

/// A tree as JSON, as an editor's YAML sees it.
fn json(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Text(text) => match text.parse::<i64>() {
            Ok(number) => number.into(),
            Err(_) => text.parse::<f64>().map_or(Json::String(text.to_string()), Json::from),
        },
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(pairs) => {
            let pairs = pairs.iter().map(|(k, v)| (k.text().unwrap_or_default().into(), json(v)));
            Json::Object(pairs.collect::<Map<_, _>>())
        }
    }
}

/// Whether a value is of one of the types.
fn is_of_type(names: &Json, value: &Json) -> bool {
    match names {
        Json::Array(names) => names.iter().any(|name| is_of_type(name, value)),
        name => match name.as_str().unwrap() {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("type {other}"),
        },
    }
}

/// As much of JSON Schema as ours uses; anything else in it fails.
fn check(root: &Json, schema: &Json, value: &Json, path: &str) -> Result<(), String> {
    let no = |what: &str| Err(format!("{path}: {value} {what}"));
    let properties = schema.get("properties").and_then(Json::as_object);
    for (key, rule) in schema.as_object().ok_or("a schema is an object")? {
        match key.as_str() {
            "$schema" | "$defs" | "title" | "description" | "patternProperties" => {}
            "$ref" => {
                let name = rule.as_str().and_then(|r| r.strip_prefix("#/$defs/")).unwrap();
                let target = root["$defs"].get(name).ok_or(format!("no definition {name}"))?;
                check(root, target, value, path)?;
            }
            "anyOf" => {
                let tried: Vec<_> =
                    rule.as_array().unwrap().iter().map(|s| check(root, s, value, path)).collect();
                if tried.iter().all(Result::is_err) {
                    return Err(format!("{path}: none of {tried:?}"));
                }
            }
            "type" if !is_of_type(rule, value) => return no(&format!("is not {rule}")),
            "enum" if !rule.as_array().unwrap().contains(value) => return no("is not listed"),
            "const" if rule != value => return no(&format!("is not {rule}")),
            "minimum" if value.as_f64() < rule.as_f64() => return no("is too small"),
            "type" | "enum" | "const" | "minimum" => {}
            "required" => {
                for name in rule.as_array().unwrap() {
                    if value.is_object() && value.get(name.as_str().unwrap()).is_none() {
                        return no(&format!("lacks {name}"));
                    }
                }
            }
            "items" => {
                for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, item, &format!("{path}[{i}]"))?;
                }
            }
            "properties" | "additionalProperties" => {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    let inner_path = format!("{path}.{name}");
                    match properties.and_then(|properties| properties.get(name)) {
                        Some(known) if key == "properties" => {
                            check(root, known, inner, &inner_path)?
                        }
                        None if key != "properties" && !name.starts_with("x-") => match rule {
                            Json::Bool(false) => return no(&format!("has {name}")),
                            other => check(root, other, inner, &inner_path)?,
                        },
                        _ => {}
                    }
                }
            }
            other => panic!("the schema uses {other}, which this test does not know"),
        }
    }
    Ok(())
}

/// Whether a text is valid.
pub(super) fn valid(text: &str) -> Result<(), String> {
    let scenario = Scenario::parse("s.yaml", text).map_err(|mistake| mistake.to_string())?;
    let schema = schema();
    check(&schema, &schema, &json(&scenario.root), "")
}

#[test]
fn the_schema_knows_the_same_keys() {
    let schema = schema();
    let same = |pointer: &str, keys: &[&str]| {
        let found = schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
        let mut found: Vec<&str> = found.as_object().unwrap().keys().map(String::as_str).collect();
        let mut keys = keys.to_vec();
        found.sort_unstable();
        keys.sort_unstable();
        assert_eq!(found, keys, "{pointer}");
    };
    same("/properties", plan::KEYS);
    same("/properties/websocket/anyOf/1/properties", script::KEYS);
    same("/properties/limits/properties", limit::KEYS);
    same("/properties/probes/properties", probes::KEYS);
    same("/$defs/prometheus/properties", probes::PROMETHEUS_KEYS);
    same("/$defs/promql/properties", probes::PROMQL_KEYS);
    same("/properties/socketio/properties", &[events::VERBS, events::OTHERS].concat());
    same("/$defs/event/properties", events::VERB_KEYS);
    same("/$defs/event/properties/done/anyOf/1/properties", events::DONE_KEYS);
    same("/properties/lists/additionalProperties/properties", list::KEYS);
    same("/$defs/crowd/properties", crowd::KEYS);
    same("/$defs/crowd/properties/accounts/properties", account::KEYS);
    let more = ["hold", "by", "most", "rest", "mark"];
    same("/$defs/phase/properties", &[timeline::RUN_KEYS, &more].concat());
    same("/$defs/profiler/anyOf/1/properties", profile::PROFILERS);
    same("/$defs/sampler/properties", profile::SAMPLER_KEYS);
    let pprof = "/$defs/profiler/anyOf/1/properties/pprof/anyOf/1/properties";
    same(pprof, profile::PPROF_KEYS);
    same("/$defs/step/anyOf/1/properties", &[lower::VERBS, &["every", "think", "do"]].concat());
    same("/$defs/span/anyOf/1/properties", saying::SPAN_KEYS);
}

#[test]
fn the_schema_refuses_what_is_wrong() {
    let base = "target: yardstick
crowds: {p: {size: 1, journey: [login]}}
timeline: [{run: p at 1/s}]
";
    assert_eq!(valid(base), Ok(()));
    for (from, to) in [
        ("size: 1", "size: many"),
        ("size: 1", "sise: 1"),
        ("[login]", "[lodin]"),
        ("[login]", "[{talk: {for: 5s}}]"),
        ("timeline", "timelime"),
        ("run: p", "ran: p"),
        ("target: yardstick", "about: x"),
    ] {
        assert!(valid(&base.replace(from, to)).is_err(), "{to}");
    }
}
