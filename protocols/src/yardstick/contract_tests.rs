//! `yardstick.proto` as a compiler of such files reads it, against `types.rs`.

use std::collections::BTreeMap;

use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};
use protox::file::{File, FileResolver};
use serde_json::Value as Json;

use super::golden::{answers, frames, requests};
use super::proto::read;
use super::tests::{encode_frame, encode_request};
use super::*;

const FILE: &str = "yardstick.proto";

struct OneFile;

impl FileResolver for OneFile {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match name == FILE {
            true => File::from_source(name, include_str!("yardstick.proto")),
            false => Err(protox::Error::file_not_found(name)),
        }
    }
}

fn pool() -> DescriptorPool {
    let mut compiler = protox::Compiler::with_file_resolver(OneFile);
    compiler.open_file(FILE).unwrap().descriptor_pool()
}

fn message(pool: &DescriptorPool, name: &str) -> MessageDescriptor {
    pool.get_message_by_name(&format!("yardstick.v1.{name}")).unwrap()
}

/// A field in words: number, name in JSON, type, and whether it is of a `oneof`.
fn in_words(field: &FieldDescriptor) -> String {
    let kind = match field.kind() {
        Kind::Uint32 => "u32".to_owned(),
        Kind::Uint64 => "Millis".to_owned(),
        Kind::Bool => "bool".to_owned(),
        Kind::String => "Text".to_owned(),
        Kind::Bytes => "Bytes".to_owned(),
        Kind::Message(message) => message.name().to_owned(),
        other => panic!("{}: types.rs has no {other:?}", field.full_name()),
    };
    let kind = if field.is_list() { format!("Vec<{kind}>") } else { kind };
    let choice = if field.containing_oneof().is_some() { " of a choice" } else { "" };
    format!("{} {} {kind}{choice}", field.number(), field.json_name())
}

/// The fields of a message, or variants of a choice, as `types.rs` has them: the words above and
/// the name.
type Fields = Vec<(String, String)>;

/// Reads the `message!` and `choice!` of `types.rs`; gives messages, with their choices put in.
fn types() -> BTreeMap<String, Fields> {
    let mut all: BTreeMap<String, Fields> = BTreeMap::new();
    let mut choices: Vec<(String, String)> = Vec::new();
    let mut name = String::new();
    for line in include_str!("types.rs").lines() {
        let line = line.trim().trim_end_matches(',').replace("<'a>", "");
        if let Some(start) = line.strip_suffix(" {").filter(|start| !start.ends_with('!')) {
            name = start.to_owned();
            all.insert(name.clone(), Fields::new());
        } else if let Some(empty) = line.strip_suffix(" {}") {
            all.insert(empty.to_owned(), Fields::new());
        } else if let Some(choice) = line.strip_prefix("oneof what: ") {
            choices.push((name.clone(), choice.to_owned()));
        } else if let Some((number, rest)) = line.split_once(' ')
            && number.parse::<u32>().is_ok()
        {
            let (json, field) = rest.split_once(' ').unwrap();
            let json = json.trim_matches('"');
            let (field, kind) = field.split_once([':', '(']).unwrap();
            let kind = kind.trim().trim_end_matches(')');
            let words = format!("{number} {json} {kind}");
            all.get_mut(&name).unwrap().push((words, field.to_owned()));
        }
    }
    for (message, choice) in choices {
        let variants = all.remove(&choice).unwrap();
        let of_a_choice = |(words, field): (String, String)| {
            (format!("{words} of a choice"), field.to_lowercase())
        };
        all.get_mut(&message).unwrap().extend(variants.into_iter().map(of_a_choice));
    }
    all
}

#[test]
fn types_and_contract_have_the_same_fields() {
    let in_words = |field: FieldDescriptor| (in_words(&field), field.name().to_owned());
    let mut contract: BTreeMap<String, Fields> = pool()
        .all_messages()
        .map(|message| (message.name().to_owned(), message.fields().map(in_words).collect()))
        .collect();
    let mut types = types();
    types.values_mut().chain(contract.values_mut()).for_each(|fields| fields.sort());
    for (name, fields) in &contract {
        assert_eq!(types.get(name), Some(fields), "{name}");
    }
    assert_eq!(types.len(), contract.len(), "{:?}", types.keys());
    assert!(types.len() > 40 && types["Request"].len() >= 22, "{}", types.len());
}

/// What a compiler's message makes of bytes, in canonical JSON.
fn canonical(message: &MessageDescriptor, bytes: &[u8]) -> Json {
    let decoded = DynamicMessage::decode(message.clone(), bytes).unwrap();
    assert_eq!(decoded.unknown_fields().count(), 0);
    serde_json::to_value(&decoded).unwrap()
}

#[test]
fn golden_bytes_mean_the_same_to_everybody() {
    let pool = pool();
    let (ask, frame) = (message(&pool, "Request"), message(&pool, "Frame"));
    for (request, json, _) in requests() {
        let bytes = encode_request(&request, Encoding::Proto);
        let json: Json = serde_json::from_str(json).unwrap();
        assert_eq!(canonical(&ask, &bytes), json);
        let theirs = DynamicMessage::deserialize(ask.clone(), &json).unwrap();
        let bytes = prost_reflect::prost::Message::encode_to_vec(&theirs);
        assert_eq!(read::<Request<'_>>(&bytes).as_ref(), Ok(&request), "{json}");
    }
    for (tells, json, _) in frames().into_iter().chain(answers()) {
        let bytes = encode_frame(&tells, Encoding::Proto);
        let json: Json = serde_json::from_str(json).unwrap();
        assert_eq!(canonical(&frame, &bytes), json);
        let theirs = DynamicMessage::deserialize(frame.clone(), &json).unwrap();
        let bytes = prost_reflect::prost::Message::encode_to_vec(&theirs);
        assert_eq!(read::<Frame<'_>>(&bytes).as_ref(), Ok(&tells), "{json}");
    }
}

#[test]
fn there_are_golden_bytes_of_every_field() {
    let pool = pool();
    let mut seen = std::collections::BTreeSet::new();
    let (ask, frame) = (message(&pool, "Request"), message(&pool, "Frame"));
    for (request, ..) in requests() {
        let bytes = encode_request(&request, Encoding::Proto);
        note(&DynamicMessage::decode(ask.clone(), &*bytes).unwrap(), &mut seen);
    }
    for (tells, ..) in frames().into_iter().chain(answers()) {
        let bytes = encode_frame(&tells, Encoding::Proto);
        note(&DynamicMessage::decode(frame.clone(), &*bytes).unwrap(), &mut seen);
    }
    let all = pool.all_messages().flat_map(|message| {
        message.fields().map(|field| field.full_name().to_owned()).collect::<Vec<_>>()
    });
    let missing: Vec<String> = all.filter(|name| !seen.contains(name)).collect();
    assert_eq!(missing, Vec::<String>::new());
}

/// Notes which fields are set, at any depth.
fn note(message: &DynamicMessage, seen: &mut std::collections::BTreeSet<String>) {
    for (field, value) in message.fields() {
        seen.insert(field.full_name().to_owned());
        let values = value.as_list().map_or(std::slice::from_ref(value), |list| list);
        values.iter().filter_map(|value| value.as_message()).for_each(|inner| note(inner, seen));
    }
}
