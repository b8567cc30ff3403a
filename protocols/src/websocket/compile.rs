//! A description made ready: everything looked up once, so that sessions only copy and compare.

use super::piece::{Blanks, Found, Piece, Slot, Style, begins, joined, pieces, uses};
use super::proto::{self, Schema, Way};
use super::{json, msgpack};
use crate::wire::frame::Opcode;
use model::Measure;
use model::script::{self, Body, Codec, HttpBody, Script, Source, Template};

/// Most names under which something can be kept.
const KEPT_MAX: usize = 64;

/// A description, ready to be played.
#[derive(Default)]
pub(super) struct Compiled {
    pub(super) codec: Option<Codec>,
    pub(super) path: Option<Box<[Piece]>>,
    pub(super) subprotocols: Vec<String>,
    pub(super) headers: Vec<(String, Box<[Piece]>)>,
    pub(super) login: Vec<HttpStep>,
    pub(super) opening: Vec<Exchange>,
    pub(super) verbs: Vec<(Measure, Exchange)>,
    pub(super) heartbeat: Option<(u64, Option<Box<[Piece]>>)>,
    pub(super) replies: Vec<(Pattern, Box<[Piece]>)>,
    deliveries: Vec<Pattern>,
    history: Vec<Pattern>,
    /// How many things are kept.
    pub(super) kept: usize,
    /// Whether a person's name, or what was kept, is needed behind the login.
    pub(super) remembers: bool,
    pub(super) deflate: bool,
}

/// Something said and answered.
pub(super) struct Exchange {
    pub(super) send: Option<Box<[Piece]>>,
    pub(super) answer: Option<Pattern>,
    pub(super) refused: Option<Pattern>,
    pub(super) why: Option<Path>,
    pub(super) keep: Vec<(u8, Path)>,
    /// Its answer names the room.
    pub(super) needs_room: bool,
}

/// A request over HTTP.
pub(super) struct HttpStep {
    pub(super) method: String,
    pub(super) path: Box<[Piece]>,
    pub(super) headers: Vec<(String, Box<[Piece]>)>,
    /// The body and its type.
    pub(super) body: Option<(&'static str, Box<[Piece]>)>,
    pub(super) status: u16,
    pub(super) keep: Vec<(u8, HttpSource)>,
}

/// Where something is kept from.
pub(super) enum HttpSource {
    Body(Box<[Box<str>]>),
    Header(String),
    Cookie(String),
}

/// A way to a value.
#[derive(Debug)]
pub(super) enum Path {
    Keys(Box<[Box<str>]>),
    Way(Way),
}

/// By what a frame is known.
pub(super) enum Pattern {
    Start(Box<[Piece]>),
    Fields(Vec<(Path, Box<[Piece]>)>),
}

impl Pattern {
    /// Whether a frame is such a one.
    pub(super) fn is(&self, codec: Codec, payload: &[u8], blanks: &Blanks<'_>) -> bool {
        match self {
            Pattern::Start(start) => begins(start, blanks, payload).is_some(),
            Pattern::Fields(fields) => fields.iter().all(|(path, value)| {
                path.find(codec, payload).is_some_and(|found| found.is(value, blanks))
            }),
        }
    }

    fn uses(&self, slot: Slot) -> bool {
        match self {
            Pattern::Start(start) => uses(start, slot),
            Pattern::Fields(fields) => fields.iter().any(|(_, value)| uses(value, slot)),
        }
    }
}

impl Path {
    /// What it leads to.
    pub(super) fn find<'a>(&self, codec: Codec, payload: &'a [u8]) -> Option<Found<'a>> {
        match self {
            Path::Way(way) => proto::find(payload, way),
            Path::Keys(keys) if codec == Codec::Msgpack => msgpack::find(payload, keys),
            Path::Keys(keys) => json::find(payload, keys),
        }
    }
}

impl Compiled {
    /// Makes a description ready. The error is advice for the user.
    pub(super) fn of(script: &Script, codec: Codec, deflate: bool) -> Result<Compiled, String> {
        let schema = match (codec, &script.proto) {
            (Codec::Protobuf, Some(proto)) => Some(Schema::read(proto)?),
            (Codec::Protobuf, None) => return Err("protobuf needs a `proto`".into()),
            _ => None,
        };
        let mut kept: Vec<String> = Vec::new();
        let sources = script.login.iter().flat_map(|step| &step.keep);
        for (name, _) in sources.chain(script.opening.iter().flat_map(|step| &step.keep)) {
            if !kept.contains(name) {
                kept.push(name.clone());
            }
        }
        if kept.len() > KEPT_MAX {
            return Err(format!("more than {KEPT_MAX} things are kept"));
        }
        let count = kept.len();
        let maker = Maker { codec, schema, kept };
        let verbs: Vec<(Measure, Exchange)> = script
            .verbs
            .iter()
            .map(|(verb, exchange)| Ok((*verb, maker.exchange(exchange)?)))
            .collect::<Result<_, String>>()?;
        let heartbeat = match &script.heartbeat {
            None => None,
            Some(beat) => {
                let send = beat.send.as_ref().map(|body| maker.body(body)).transpose()?;
                Some((beat.every_ns, send))
            }
        };
        let replies = script.replies.iter();
        let replies: Vec<(Pattern, Box<[Piece]>)> = replies
            .map(|reply| Ok((maker.pattern(&reply.when)?, maker.body(&reply.send)?)))
            .collect::<Result<_, String>>()?;
        let opening: Result<_, String> =
            script.opening.iter().map(|exchange| maker.exchange(exchange)).collect();
        let mut compiled = Compiled {
            codec: Some(codec),
            path: script.path.as_ref().map(|path| maker.text(path, Style::Url)),
            subprotocols: script.subprotocols.clone(),
            headers: maker.headers(&script.headers),
            login: script.login.iter().map(|step| maker.http_step(step)).collect(),
            opening: opening?,
            verbs,
            heartbeat,
            replies,
            deliveries: maker.patterns(&script.deliveries)?,
            history: maker.patterns(&script.history)?,
            kept: count,
            remembers: false,
            deflate,
        };
        compiled.remembers = compiled.is_remembering();
        Ok(compiled)
    }

    /// Whether anything that is said or heard behind the login needs what was known before.
    fn is_remembering(&self) -> bool {
        let slots = (0..self.kept as u8).map(Slot::Kept).chain([Slot::Name]);
        let said = self.verbs.iter().map(|(_, exchange)| exchange);
        let sent = said.clone().filter_map(|exchange| exchange.send.as_deref());
        let sent = sent.chain(self.replies.iter().map(|(_, send)| &**send));
        let sent = sent.chain(self.heartbeat.iter().filter_map(|(_, send)| send.as_deref()));
        let heard = said.flat_map(|exchange| [&exchange.answer, &exchange.refused]).flatten();
        let heard = heard.chain(self.deliveries.iter()).chain(self.history.iter());
        let heard = heard.chain(self.replies.iter().map(|(when, _)| when));
        let (sent, heard): (Vec<&[Piece]>, Vec<&Pattern>) = (sent.collect(), heard.collect());
        slots.into_iter().any(|slot| {
            sent.iter().any(|pieces| uses(pieces, slot)) || heard.iter().any(|p| p.uses(slot))
        })
    }

    /// How messages are written.
    pub(super) fn codec(&self) -> Codec {
        self.codec.unwrap_or(Codec::Json)
    }

    /// The kind of frame that is spoken in.
    pub(super) fn opcode(&self) -> Opcode {
        match self.codec() {
            Codec::Json | Codec::JsonLines | Codec::Text => Opcode::Text,
            Codec::Msgpack | Codec::Protobuf => Opcode::Binary,
        }
    }

    /// Whether a message is one of the codec's at all.
    pub(super) fn is_valid(&self, payload: &[u8]) -> bool {
        match self.codec() {
            Codec::Json | Codec::JsonLines => json::is_valid(payload),
            Codec::Text => std::str::from_utf8(payload).is_ok(),
            Codec::Msgpack => msgpack::is_valid(payload),
            Codec::Protobuf => proto::is_valid(payload),
        }
    }

    /// Whether stamps in a frame are deliveries.
    #[inline]
    pub(super) fn is_live(&self, payload: &[u8], blanks: &Blanks<'_>) -> bool {
        let is = |pattern: &Pattern| pattern.is(self.codec(), payload, blanks);
        !self.history.iter().any(is)
            && (self.deliveries.is_empty() || self.deliveries.iter().any(is))
    }
}

/// What is needed to make pieces.
struct Maker {
    codec: Codec,
    schema: Option<Schema>,
    kept: Vec<String>,
}

impl Maker {
    fn text(&self, template: &Template, style: Style) -> Box<[Piece]> {
        joined(pieces(template, style, &self.kept))
    }

    fn headers(&self, headers: &[(String, Template)]) -> Vec<(String, Box<[Piece]>)> {
        headers.iter().map(|(name, value)| (name.clone(), self.text(value, Style::Raw))).collect()
    }

    fn body(&self, body: &Body) -> Result<Box<[Piece]>, String> {
        let mut out = Vec::new();
        match (self.codec, &self.schema) {
            (Codec::Protobuf, Some(schema)) => out = schema.body(body, &self.kept)?,
            (Codec::Msgpack, _) => msgpack::body(body, &self.kept, &mut out)?,
            // Text that stands alone is said as it is, also where JSON is spoken.
            (_, _) => match body {
                Body::Text(text) | Body::Bare(text) => out = pieces(text, Style::Raw, &self.kept),
                body if self.codec == Codec::Text => {
                    return Err(format!("`codec: text` says text, not {body:?}"));
                }
                body => json::body(body, &self.kept, &mut out),
            },
        }
        Ok(joined(out))
    }

    fn path(&self, path: &str) -> Result<Path, String> {
        match &self.schema {
            Some(schema) => schema.way(path).map(Path::Way),
            None => Ok(Path::Keys(keys(path))),
        }
    }

    fn pattern(&self, pattern: &script::Pattern) -> Result<Pattern, String> {
        Ok(match pattern {
            script::Pattern::Start(start) => Pattern::Start(self.text(start, Style::Raw)),
            script::Pattern::Fields(_) if self.codec == Codec::Text => {
                return Err("frames of `codec: text` are known by how they begin".into());
            }
            script::Pattern::Fields(fields) => {
                let fields = fields.iter();
                let fields = fields
                    .map(|(path, value)| Ok((self.path(path)?, self.text(value, Style::Raw))));
                Pattern::Fields(fields.collect::<Result<_, String>>()?)
            }
        })
    }

    fn patterns(&self, patterns: &[script::Pattern]) -> Result<Vec<Pattern>, String> {
        patterns.iter().map(|pattern| self.pattern(pattern)).collect()
    }

    fn exchange(&self, exchange: &script::Exchange) -> Result<Exchange, String> {
        let pattern = |pattern: &Option<script::Pattern>| {
            pattern.as_ref().map(|pattern| self.pattern(pattern)).transpose()
        };
        let (answer, refused) = (pattern(&exchange.answer)?, pattern(&exchange.refused)?);
        let why = exchange.why.as_ref().map(|path| self.path(path)).transpose()?;
        let mut keep = Vec::new();
        for (name, source) in &exchange.keep {
            if let Source::Path(path) = source {
                keep.push((self.number(name), self.path(path)?));
            }
        }
        let named = [&answer, &refused].into_iter().flatten().any(|p| p.uses(Slot::Room));
        let send = exchange.send.as_ref().map(|body| self.body(body)).transpose()?;
        Ok(Exchange { send, answer, refused, why, keep, needs_room: named })
    }

    fn number(&self, name: &str) -> u8 {
        self.kept.iter().position(|known| known == name).unwrap_or(0) as u8
    }

    fn http_step(&self, step: &script::HttpStep) -> HttpStep {
        let source = |source: &Source| match source {
            Source::Path(path) => HttpSource::Body(keys(path)),
            Source::Header(name) => HttpSource::Header(name.clone()),
            Source::Cookie(name) => HttpSource::Cookie(name.clone()),
        };
        let body = match &step.body {
            HttpBody::Nothing => None,
            HttpBody::Form(pairs) => {
                let mut out: Vec<Piece> = Vec::new();
                for (at, (name, value)) in pairs.iter().enumerate() {
                    let mut head = if at > 0 { b"&".to_vec() } else { Vec::new() };
                    super::piece::escape_url(name.as_bytes(), &mut head);
                    head.push(b'=');
                    out.push(Piece::Bytes(head.into()));
                    out.extend(pieces(value, Style::Url, &self.kept));
                }
                Some(("application/x-www-form-urlencoded", joined(out)))
            }
            HttpBody::Json(body) => {
                let mut out = Vec::new();
                json::body(body, &self.kept, &mut out);
                Some(("application/json", joined(out)))
            }
        };
        HttpStep {
            method: step.method.clone(),
            path: self.text(&step.path, Style::Url),
            headers: self.headers(&step.headers),
            body,
            status: step.status,
            keep: step.keep.iter().map(|(n, from)| (self.number(n), source(from))).collect(),
        }
    }
}

fn keys(path: &str) -> Box<[Box<str>]> {
    path.split('.').map(Box::from).collect()
}
