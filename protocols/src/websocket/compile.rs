//! A description made ready: everything looked up once, so that sessions only copy and compare.

use super::piece::{Blanks, Found, Piece, Slot, Style, begins, joined, pieces, uses};
use super::proto::{self, Schema, Way};
use super::{json, msgpack};
use crate::wire::frame::Opcode;
use model::Measure;
use model::script::{self, Body, Codec, HttpBody, Misfit, Script, Source, Template};

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
    /// Makes a description ready. The error says where it cannot be.
    pub(super) fn of(script: &Script, codec: Codec, deflate: bool) -> Result<Compiled, Misfit> {
        let schema = match (codec, &script.proto) {
            (Codec::Protobuf, Some(proto)) => {
                Some(Schema::read(proto).map_err(|why| why.within("proto"))?)
            }
            (Codec::Protobuf, None) => {
                return Err("protobuf needs a `proto`".to_owned().into());
            }
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
            return Err(format!("more than {KEPT_MAX} things are kept").into());
        }
        let count = kept.len();
        let maker = Maker { codec, schema, kept };
        let verb = |(verb, exchange): &(Measure, script::Exchange)| {
            let made = maker.exchange(exchange).map_err(|why| why.within(verb.name()));
            Ok((*verb, made.map_err(|why| why.within("verbs"))?))
        };
        let heartbeat = match &script.heartbeat {
            None => None,
            Some(beat) => {
                let send = beat.send.as_ref().map(|body| maker.body(body)).transpose();
                let send = send.map_err(|why| why.within("send").within("heartbeat"))?;
                Some((beat.every_ns, send))
            }
        };
        let reply = |reply: &script::Reply| {
            let when = maker.pattern(&reply.when).map_err(|why| why.within("when"))?;
            let send = maker.body(&reply.send).map_err(|why| why.within("send"))?;
            Ok((when, send))
        };
        let mut compiled = Compiled {
            codec: Some(codec),
            path: script.path.as_ref().map(|path| maker.text(path, Style::Url)),
            subprotocols: script.subprotocols.clone(),
            headers: maker.headers(&script.headers),
            login: script.login.iter().map(|step| maker.http_step(step)).collect(),
            opening: each("opening", &script.opening, |exchange| maker.exchange(exchange))?,
            verbs: script.verbs.iter().map(verb).collect::<Result<_, Misfit>>()?,
            heartbeat,
            replies: each("replies", &script.replies, reply)?,
            deliveries: each("deliveries", &script.deliveries, |one| maker.pattern(one))?,
            history: each("history", &script.history, |one| maker.pattern(one))?,
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

/// What is made of the items of a list.
fn each<T, U>(
    key: &str,
    items: &[T],
    make: impl Fn(&T) -> Result<U, Misfit>,
) -> Result<Vec<U>, Misfit> {
    let one = |(place, item): (usize, &T)| {
        make(item).map_err(|why| why.within(place.to_string()).within(key))
    };
    items.iter().enumerate().map(one).collect()
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

    fn body(&self, body: &Body) -> Result<Box<[Piece]>, Misfit> {
        let mut out = Vec::new();
        match (self.codec, &self.schema) {
            (Codec::Protobuf, Some(schema)) => out = schema.body(body, &self.kept)?,
            (Codec::Msgpack, _) => msgpack::body(body, &self.kept, &mut out)?,
            // Text that stands alone is said as it is, also where JSON is spoken.
            (_, _) => match body {
                Body::Text(text) | Body::Bare(text) => out = pieces(text, Style::Raw, &self.kept),
                body if self.codec == Codec::Text => {
                    return Err(format!("`codec: text` says a text, not {}", kind(body)).into());
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

    fn pattern(&self, pattern: &script::Pattern) -> Result<Pattern, Misfit> {
        Ok(match pattern {
            script::Pattern::Start(start) => Pattern::Start(self.text(start, Style::Raw)),
            script::Pattern::Fields(_) if self.codec == Codec::Text => {
                let reason = "frames of `codec: text` are known by how they begin";
                return Err(reason.to_owned().into());
            }
            script::Pattern::Fields(fields) => {
                let fields = fields.iter();
                let fields = fields.map(|(path, value)| {
                    let way = self.path(path).map_err(|why| Misfit::from(why).within(path))?;
                    Ok((way, self.text(value, Style::Raw)))
                });
                Pattern::Fields(fields.collect::<Result<_, Misfit>>()?)
            }
        })
    }

    fn exchange(&self, exchange: &script::Exchange) -> Result<Exchange, Misfit> {
        let pattern = |key: &str, pattern: &Option<script::Pattern>| {
            let made = pattern.as_ref().map(|pattern| self.pattern(pattern)).transpose();
            made.map_err(|why| why.within(key))
        };
        let path =
            |key: &str, path: &str| self.path(path).map_err(|why| Misfit::from(why).within(key));
        let answer = pattern("answer", &exchange.answer)?;
        let refused = pattern("refused", &exchange.refused)?;
        let why = exchange.why.as_ref().map(|why| path("why", why)).transpose()?;
        let mut keep = Vec::new();
        for (name, source) in &exchange.keep {
            if let Source::Path(from) = source {
                let from = path(name, from).map_err(|why| why.within("keep"))?;
                keep.push((self.number(name), from));
            }
        }
        let named = [&answer, &refused].into_iter().flatten().any(|p| p.uses(Slot::Room));
        let send = exchange.send.as_ref().map(|body| self.body(body)).transpose();
        let send = send.map_err(|why| why.within("send"))?;
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

/// What a body is, in words.
fn kind(body: &Body) -> &'static str {
    match body {
        Body::Text(_) => "a text",
        Body::Bare(_) => "a number",
        Body::List(_) => "a list",
        Body::Map(_) => "a map",
    }
}
