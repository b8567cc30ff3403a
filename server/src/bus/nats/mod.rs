//! The bus over a NATS server: the log is a stream of JetStream, news are plain messages.
//!
//! A thread of its own holds the connection. Whatever goes wrong with it (it breaks, is silent, has
//! gaps), the thread dials again and asks for the log from where it has come to; what has not come
//! back is said again. Only what a new connection cannot mend ends the node.

mod connection;
mod stream;
mod wire;

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use self::connection::{Connection, Heard, Place};
use self::stream::{Names, State};
use super::{Arrived, Batch, BusConfig, Errand, Line, Orderer};
use crate::config::{LOG_PATIENCE, LOG_WAITING_MAX};
use crate::delivery::conn::Ticket;
use crate::machine::desk::Inlet;
use crate::store::{Done, Job, Store, Want};

/// The bus's own waker; sockets have [`SOCKET`].
pub(crate) const WAKER: Token = Token(0);
const SOCKET: Token = Token(1);
/// Subscriptions; those of the log, one a connection, are numbered from [`SID_LOG`].
const SID_API: u64 = 1;
const SID_ACKS: u64 = 2;
const SID_NEWS: u64 = 3;
const SID_LOG: u64 = 4;
/// A log that shows no life for so long is asked for again.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// From one try to dial to the next, and the longest pause.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// From one look at the clock to the next.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Longest patience with an entry that does not come back.
const PATIENCE_MAX: Duration = Duration::from_secs(30);
/// New connections that find the same gap in the log.
const GAPS_MAX: u32 = 3;

/// Why a conversation with the NATS server ends.
enum End {
    /// Another one may go better.
    Away(String),
    /// This node cannot go on.
    Fatal(String),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> End {
        End::Away(match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => "it does not answer".to_owned(),
            _ => error.to_string(),
        })
    }
}

impl From<End> for io::Error {
    fn from(end: End) -> io::Error {
        let (End::Away(why) | End::Fatal(why)) = end;
        io::Error::other(why)
    }
}

/// A node's end of the bus.
pub(crate) struct Nats {
    config: BusConfig,
    place: Place,
    names: Names,
    life: u64,
    start: Instant,
    connection: Connection,
    state: State,
    orderer: Orderer,
    /// How many connections there were.
    connections: u64,
    /// When it was dialed.
    dialed: Duration,
    /// How often the log had a gap since an entry arrived.
    gaps: u32,
    /// When the log showed life.
    heard: Duration,
    /// When something of ours went out or came back last, and how long the next may take.
    moved: Duration,
    patience: Duration,
    /// Why an entry of ours was refused.
    refused: Option<String>,
    /// Where JetStream waits for our word that we have what it has sent.
    held: Option<String>,
}

impl Nats {
    /// Dials; makes the log if there is none. `life` must be random.
    pub(crate) fn dial(config: &BusConfig, life: u64, start: Instant) -> io::Result<Nats> {
        let place = Place::parse(&config.url).map_err(io::Error::other)?;
        let names = Names::new(&config.service).map_err(io::Error::other)?;
        let at = |why: End| {
            let (End::Away(why) | End::Fatal(why)) = why;
            io::Error::other(format!("NATS at {}: {why}", config.url))
        };
        let mut connection =
            Connection::dial(&place, &config.credentials).map_err(End::from).map_err(at)?;
        let state = find_log(&mut connection, &names, life).map_err(at)?;
        Ok(Nats {
            config: config.clone(),
            place,
            names,
            life,
            start,
            connection,
            state,
            orderer: Orderer::new(life, 0),
            connections: 0,
            dialed: start.elapsed(),
            gaps: 0,
            heard: start.elapsed(),
            moved: start.elapsed(),
            patience: LOG_PATIENCE,
            refused: None,
            held: None,
        })
    }

    /// Carries out all that the log has by now; gives the key of tokens, which is the first one in
    /// the log.
    pub(crate) fn catch_up(&mut self, store: &mut Store) -> io::Result<[u8; 32]> {
        let wrong = |why: crate::store::Trouble| io::Error::other(why.to_string());
        let following = store.follow(&self.state.log).map_err(wrong)?;
        self.orderer = Orderer::new(self.life, following.position);
        self.check_state()?;
        self.subscribe()?;
        let target = self.state.last;
        let mut asked = false;
        loop {
            let mut batches = Vec::new();
            self.take_heard(&mut batches, &mut Vec::new())?;
            if !batches.is_empty() {
                let failed = |failed: crate::store::FollowFailed| wrong(failed.trouble);
                store.follow_batches(batches).map_err(failed)?;
            }
            let key = store.following().map_err(wrong)?.and_then(|following| following.key);
            match key {
                Some(key) if self.orderer.position() >= target => return Ok(key),
                None if self.orderer.position() >= target && !asked => {
                    asked = true;
                    self.offer_key()?;
                }
                _ => {}
            }
            self.order();
            self.say_word();
            self.connection.send()?;
            self.connection.receive().map_err(End::from)?;
        }
    }

    fn offer_key(&mut self) -> io::Result<()> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        let want = Want::Key { key };
        self.orderer.offer([Job { ticket: Ticket::FOREIGN, want, since_us: 0 }]);
        Ok(())
    }

    /// What the log has must go with what this node has carried out.
    fn check_state(&self) -> Result<(), End> {
        let (position, State { first, last, log }) = (self.orderer.position(), &self.state);
        if *last < position {
            return Err(End::Fatal(format!(
                "the log {log} ends with entry {last}, and this node has carried out {position}: \
                 the NATS server has lost what it had acknowledged"
            )));
        }
        if *last > position && *first > position + 1 {
            return Err(End::Fatal(format!(
                "the log {log} begins with entry {first}, and this node has come to {position}: \
                 begin with a copy of another node's folder"
            )));
        }
        Ok(())
    }

    /// Asks for the log from where we are, and for news.
    fn subscribe(&mut self) -> Result<(), End> {
        self.connections += 1;
        let deliver = format!("_INBOX.{:x}.log.{}", self.life, self.connections);
        let acks = self.acks();
        let out = &mut self.connection.out;
        wire::subscribe(out, &acks, SID_ACKS);
        wire::subscribe(out, &self.names.news, SID_NEWS);
        wire::subscribe(out, &deliver, SID_LOG + self.connections);
        let ask = stream::consume(&self.names, &deliver, self.orderer.position());
        let subject = format!("$JS.API.CONSUMER.CREATE.{}", self.names.stream);
        // What the log delivers before this is answered is missed here, and so asked for last.
        wire::publish(out, &subject, &acks, &ask);
        self.connection.send()?;
        (self.heard, self.moved) = (self.start.elapsed(), self.start.elapsed());
        (self.patience, self.held) = (LOG_PATIENCE, None);
        self.orderer.resend();
        Ok(())
    }

    fn acks(&self) -> String {
        format!("_INBOX.{:x}.ack", self.life)
    }

    /// Takes what was received: entries of the log and news.
    fn take_heard(&mut self, batches: &mut Vec<Batch>, news: &mut Vec<Vec<u8>>) -> Result<(), End> {
        let log = SID_LOG + self.connections;
        while let Some(heard) = self.connection.next()? {
            let Heard::Message(message) = heard else { continue };
            match message.sid {
                SID_NEWS => news.push(message.payload.to_vec()),
                SID_ACKS => {
                    if message.status().is_some_and(|(code, _)| code == 503) {
                        return Err(End::Away("JetStream does not answer".to_owned()));
                    }
                    self.refused = stream::refusal(message.payload).err().or(self.refused.take());
                }
                sid if sid == log => {
                    self.heard = self.start.elapsed();
                    if message.status().is_some() {
                        let stalled = message.header("Nats-Consumer-Stalled");
                        let wants_word = Some(message.reply).filter(|reply| !reply.is_empty());
                        self.held = wants_word.or(stalled).map(str::to_owned).or(self.held.take());
                        continue;
                    }
                    let position = stream::position(&message)
                        .ok_or_else(|| End::Away("an entry of the log has no place".to_owned()))?;
                    match self.orderer.arrived(position, message.payload).map_err(End::Fatal)? {
                        Arrived::Old => {}
                        Arrived::Gap => return Err(self.gap(position)),
                        Arrived::Batch(batch) => {
                            self.gaps = 0;
                            batches.push(batch);
                        }
                    }
                }
                _ => {}
            }
        }
        if batches.iter().any(|batch| batch.life == self.life) {
            (self.moved, self.patience) = (self.start.elapsed(), LOG_PATIENCE);
        }
        Ok(())
    }

    fn gap(&mut self, position: u64) -> End {
        self.gaps += 1;
        let at = self.orderer.position();
        let why = format!("behind entry {at} the log goes on with {position}");
        if self.gaps < GAPS_MAX { End::Away(why) } else { End::Fatal(why) }
    }

    /// Publishes what is to be ordered.
    fn order(&mut self) {
        let acks = self.acks();
        if !self.orderer.is_open() {
            self.moved = self.start.elapsed();
        }
        while let Some(payload) = self.orderer.next() {
            wire::publish(&mut self.connection.out, &self.names.log, &acks, payload);
        }
    }

    /// Runs until the line is closed; what ends it otherwise is fatal.
    pub(crate) fn run(mut self, line: &Line, mut poll: Poll, inlet: &Inlet<Errand, Done>) {
        let _watch = Watch(line);
        loop {
            match self.talk(line, &mut poll, inlet) {
                Ok(()) => return,
                Err(End::Fatal(why)) => return line.health.fatal(why),
                Err(End::Away(why)) => {
                    let _ =
                        poll.registry().deregister(&mut SourceFd(&self.connection.descriptor()));
                    line.health.bus(Some(format!("NATS at {} is away: {why}", self.config.url)));
                }
            }
            match self.dial_again(line) {
                Ok(true) => {}
                Ok(false) => return,
                Err(why) => return line.health.fatal(why),
            }
        }
    }

    /// One connection, until it breaks or the line is closed.
    fn talk(
        &mut self,
        line: &Line,
        poll: &mut Poll,
        inlet: &Inlet<Errand, Done>,
    ) -> Result<(), End> {
        let mut events = Events::with_capacity(8);
        self.connection.set_nonblocking()?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        let descriptor = self.connection.descriptor();
        poll.registry().register(&mut SourceFd(&descriptor), SOCKET, interest)?;
        loop {
            self.pass_on(line, inlet)?;
            let outgoing = line.take();
            self.orderer.offer(outgoing.jobs);
            for sheet in &outgoing.sheets {
                wire::publish(&mut self.connection.out, &self.names.news, "", sheet);
            }
            self.order();
            if inlet.waiting() < LOG_WAITING_MAX {
                self.say_word();
            }
            self.connection.send()?;
            if outgoing.closed {
                return Ok(());
            }
            self.look_at_clock(line)?;
            match poll.poll(&mut events, Some(LOOK_EVERY)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error.into()),
                _ => {}
            }
        }
    }

    /// Reads all there is, and passes it on.
    fn pass_on(&mut self, line: &Line, inlet: &Inlet<Errand, Done>) -> Result<(), End> {
        let (mut batches, mut news) = (Vec::new(), Vec::new());
        let result = loop {
            if let Err(end) = self.take_heard(&mut batches, &mut news) {
                break Err(end);
            }
            match self.connection.receive() {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error.into()),
            }
        };
        if !batches.is_empty() {
            if batches.iter().any(|batch| batch.life == self.life) {
                line.health.bus(None);
            }
            inlet.put(batches.into_iter().map(Errand::Batch));
        }
        if !news.is_empty() {
            line.bring(&mut news);
        }
        result
    }

    /// Tells JetStream that we have what it has sent, so that it goes on.
    fn say_word(&mut self) {
        if let Some(subject) = self.held.take() {
            wire::publish(&mut self.connection.out, &subject, "", b"");
        }
    }

    fn look_at_clock(&mut self, line: &Line) -> Result<(), End> {
        let now = self.start.elapsed();
        if now.saturating_sub(self.heard) > SILENCE_MAX {
            return Err(End::Away("the log is silent".to_owned()));
        }
        if let Some(why) = self.refused.take() {
            line.health.bus(Some(why));
        }
        if self.orderer.is_open() && now.saturating_sub(self.moved) > self.patience {
            line.health.bus(Some("what was said does not come back from the log".to_owned()));
            self.patience = (self.patience * 2).min(PATIENCE_MAX);
            self.moved = now;
            self.orderer.resend();
        }
        Ok(())
    }

    /// Dials until it succeeds; `false` if the line was closed. What is to be ordered waits
    /// meanwhile, news are lost.
    fn dial_again(&mut self, line: &Line) -> Result<bool, String> {
        let lived = self.start.elapsed().saturating_sub(self.dialed);
        let mut pause = if lived > SILENCE_MAX { PAUSE } else { PAUSE_MAX };
        loop {
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
            let outgoing = line.take();
            self.orderer.offer(outgoing.jobs);
            if outgoing.closed {
                return Ok(false);
            }
            match self.dial_once() {
                Ok(()) => {
                    line.health.bus(None);
                    return Ok(true);
                }
                Err(End::Fatal(why)) => return Err(why),
                Err(End::Away(why)) => {
                    line.health.bus(Some(format!("NATS at {} is away: {why}", self.config.url)));
                }
            }
        }
    }

    fn dial_once(&mut self) -> Result<(), End> {
        self.dialed = self.start.elapsed();
        self.connection = Connection::dial(&self.place, &self.config.credentials)?;
        let state = find_log(&mut self.connection, &self.names, self.life)?;
        if state.log != self.state.log {
            let (old, new) = (&self.state.log, &state.log);
            return Err(End::Fatal(format!("the log was {old}, and now it is {new}")));
        }
        self.state = state;
        self.check_state()?;
        self.subscribe()
    }
}

/// The log as it is; made if there is none.
fn find_log(connection: &mut Connection, names: &Names, life: u64) -> Result<State, End> {
    let inbox = format!("_INBOX.{life:x}.api");
    wire::subscribe(&mut connection.out, &inbox, SID_API);
    let mut ask = |verb: &str, payload: &[u8]| {
        let subject = format!("$JS.API.STREAM.{verb}.{}", names.stream);
        let answer = connection.request(&subject, &inbox, payload)?;
        stream::state(names, &answer).map_err(End::Away)
    };
    let found = match ask("INFO", b"")? {
        Some(state) => state,
        None => {
            // Another node may be faster: then it is there, and this answer says the same.
            ask("CREATE", &stream::create(names))?
                .ok_or_else(|| End::Away("the log cannot be made".to_owned()))?
        }
    };
    wire::unsubscribe(&mut connection.out, SID_API);
    Ok(found)
}

/// Tells the event loop when the bus's thread ends, however it ends.
struct Watch<'a>(&'a Line);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.health.fatal("the bus's thread has panicked".to_owned());
        }
        self.0.bring(&mut Vec::new()); // wakes
    }
}

#[cfg(test)]
mod tests;
