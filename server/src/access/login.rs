//! Logging in: by token at once, by password perhaps after a thread of its own has hashed it.

use std::rc::Rc;

use protocols::yardstick::{AnswerWhat, Login, Millis, Revoke, Welcome};

use crate::access::auth::{Denial, Secret, Step};
use crate::access::password::{Task, Verdict};
use crate::chat::request::{Answered, Failure, fail};
use crate::config::{
    ACCOUNTS_MAX, LOGIN_JOBS_MAX, NAME_BYTES_MAX, PASSWORD_BYTES_MAX, REVOKED_MAX,
};
use crate::core::{Core, Now, World};
use crate::delivery::conn::Ticket;
use crate::outlook::journal::{Level, Value};
use crate::store::Want;

/// A password on its way to be hashed.
#[derive(Debug)]
pub(crate) struct HashJob {
    pub(crate) ticket: Ticket,
    pub(crate) name: Box<str>,
    pub(crate) password: Box<str>,
    pub(crate) task: Task,
    /// When it was asked, in microseconds since the start.
    pub(crate) since_us: u64,
}

/// A password that was hashed.
#[derive(Debug)]
pub(crate) struct Hashed {
    pub(crate) job: HashJob,
    pub(crate) verdict: Verdict,
}

/// Passwords that wait to be hashed.
#[derive(Debug, Default)]
pub(crate) struct Hashing {
    /// Not handed over yet.
    pub(crate) jobs: Vec<HashJob>,
    /// Not answered yet, `jobs` among them.
    pub(crate) open: usize,
}

impl Core {
    pub(crate) fn login(
        &mut self,
        id: usize,
        request: u32,
        login: &Login<'_>,
        now: Now,
    ) -> Answered<'static> {
        if self.conns[id].name.is_some() {
            return fail("already_logged_in", "this connection is logged in");
        }
        if self.conns[id].logging_in {
            return fail("already_logged_in", "a login of this connection is under way");
        }
        if login.token.is_empty() {
            let ticket = self.ticket(id, request);
            return self.login_by_password(ticket, &login.name, &login.password, now);
        }
        match self.accounts.redeem(&login.token, now.unix_ms) {
            Ok((name, expires_ms, _)) => Ok(Some(self.welcome(id, name, expires_ms))),
            Err(denial) => {
                self.note(Level::Warn, "token_refused", self.door.address(id), &[]);
                Err(explain(denial))
            }
        }
    }

    /// A password was wrong.
    fn login_failed(&mut self, id: usize, name: &str, now: Now) -> Failure {
        self.door.failed(id, name, now.us);
        let address = self.door.address(id);
        self.note(Level::Warn, "login_failed", address, &[("name", Value::Text(name))]);
        explain(Denial::Denied)
    }

    /// Refuses to look at a password where too many were wrong.
    fn check_tries(&self, id: usize, name: &str, now: Now) -> Result<(), Failure> {
        match self.door.is_over(id, name, now.us) {
            true => fail("too_many_tries", "too many wrong passwords; try again in a minute"),
            false => Ok(()),
        }
    }

    fn login_by_password(
        &mut self,
        ticket: Ticket,
        name: &str,
        password: &str,
        now: Now,
    ) -> Answered<'static> {
        let id = ticket.conn as usize;
        self.check_tries(id, name, now)?;
        let step = match self.accounts.check(name, password) {
            Err(Denial::Denied) => return Err(self.login_failed(id, name, now)),
            step => step.map_err(explain)?,
        };
        match step {
            Step::In(name) => Ok(Some(self.welcome_anew(ticket, name, now))),
            Step::New(secret) => self.register(ticket, name, password, secret, now),
            Step::Hash(task) => {
                if self.hashing.open >= LOGIN_JOBS_MAX {
                    self.counters.login_busy += 1;
                    return fail("busy", format!("{LOGIN_JOBS_MAX} logins wait; try again"));
                }
                let (name, password) = (name.into(), password.into());
                self.hashing.jobs.push(HashJob { ticket, name, password, task, since_us: now.us });
                self.hashing.open += 1;
                self.conns[id].logging_in = true;
                Ok(None)
            }
        }
    }

    /// Who waited for a hash is gone: those who stay need not wait for it.
    pub(crate) fn forget_login(&mut self, serial: u64, world: &mut impl World) {
        let before = self.hashing.jobs.len();
        self.hashing.jobs.retain(|job| job.ticket.serial != serial);
        self.hashing.open -= before - self.hashing.jobs.len();
        self.hashing.open -= world.unhash(serial);
    }

    /// A password was hashed.
    pub(crate) fn hashed(&mut self, hashed: Hashed, now: Now) {
        let Hashed { job, verdict } = hashed;
        self.hashing.open -= 1;
        self.counters.login_wait_us += now.us.saturating_sub(job.since_us);
        let Some((id, dialect)) = self.asker(job.ticket) else { return };
        self.conns[id].logging_in = false;
        let (ticket, name, password) = (job.ticket, &*job.name, &*job.password);
        let known = self.accounts.known(name);
        // Of many that were hashed at once, those behind the limit are told nothing either.
        let is_check = matches!(verdict, Verdict::Passed(_));
        let tries = if is_check { self.check_tries(id, name, now) } else { Ok(()) };
        let outcome = match (verdict, known) {
            _ if tries.is_err() => tries.map(|()| None),
            (Verdict::Passed(true), Some(name)) => Ok(Some(self.welcome_anew(ticket, name, now))),
            (Verdict::Passed(_), _) => Err(self.login_failed(id, name, now)),
            // Somebody else was faster: it is their password that counts.
            (Verdict::Made(_), Some(_)) => self.login_by_password(ticket, name, password, now),
            (Verdict::Made(hash), None) => {
                self.register(ticket, name, password, Secret::Slow(hash), now)
            }
            (Verdict::Unable, _) => fail("busy", "the password could not be hashed; try again"),
        };
        self.answer(id, dialect, ticket.request, outcome);
    }

    /// Makes an account of a new name, once it is stored if it is to be stored.
    fn register(
        &mut self,
        ticket: Ticket,
        name: &str,
        password: &str,
        secret: Secret,
        now: Now,
    ) -> Answered<'static> {
        if self.accounts.is_full() {
            return Err(explain(Denial::Full));
        }
        if self.keeping.is_none() {
            let name = self.accounts.add(name, secret).map_err(explain)?;
            return Ok(Some(self.welcome_anew(ticket, name, now)));
        }
        let (name, password, secret) = (name.into(), password.into(), secret.print());
        self.keep(ticket, Want::Account { name, password, secret }, now.us)?;
        self.conns[ticket.conn as usize].logging_in = true;
        Ok(None)
    }

    /// The store has an account of that name now, of this login or of another one.
    pub(crate) fn registered(
        &mut self,
        ticket: Ticket,
        is_new: bool,
        (name, password, secret): (&str, &str, &str),
        now: Now,
    ) -> Answered<'static> {
        if is_new && !self.accounts.restore(name, secret) {
            return Err(explain(Denial::Full));
        }
        // Whoever asked may be gone; the account is there all the same.
        let Some((id, _)) = self.asker(ticket) else { return Ok(None) };
        self.conns[id].logging_in = false;
        match self.accounts.known(name) {
            Some(name) if is_new => Ok(Some(self.welcome_anew(ticket, name, now))),
            Some(_) => self.login_by_password(ticket, name, password, now),
            None => Err(explain(Denial::Denied)),
        }
    }

    /// Welcomes with a token of full length.
    fn welcome_anew(&mut self, ticket: Ticket, name: Rc<str>, now: Now) -> AnswerWhat<'static> {
        let lifetime_ms = self.config.token_lifetime.as_millis() as u64;
        self.welcome(ticket.conn as usize, name, now.unix_ms.saturating_add(lifetime_ms))
    }

    fn welcome(&mut self, id: usize, name: Rc<str>, expires_ms: u64) -> AnswerWhat<'static> {
        let token = self.accounts.token(&name, expires_ms);
        self.counters.logins += 1;
        let welcome = Welcome {
            name: name.to_string().into(),
            token: token.into(),
            expires_ms: Millis(expires_ms),
            told: self.people.number(&name),
        };
        self.people.link(&name, id, &mut self.conns);
        self.conns[id].name = Some(name);
        AnswerWhat::Welcome(welcome)
    }

    /// A token of the person who asks is good no longer, once that is stored if it is to be stored.
    pub(crate) fn revoke(
        &mut self,
        id: usize,
        request: u32,
        revoke: &Revoke<'_>,
        now: Now,
    ) -> Answered<'static> {
        let (name, expires_ms, tag) =
            self.accounts.redeem(&revoke.token, now.unix_ms).map_err(explain)?;
        if self.conns[id].name.as_ref() != Some(&name) {
            return Err(explain(Denial::Denied));
        }
        if !self.accounts.can_revoke(now.unix_ms) {
            return fail("full", format!("at most {REVOKED_MAX} revoked tokens"));
        }
        self.change(id, request, Want::Revoke { tag, expires_ms }, now)
    }
}

fn explain(denial: Denial) -> Failure {
    match denial {
        Denial::BadName => {
            ("bad_name", format!("a name has 1 to {NAME_BYTES_MAX} bytes, none of control"))
        }
        Denial::BadPassword => {
            ("too_long", format!("a password has up to {PASSWORD_BYTES_MAX} bytes"))
        }
        Denial::Denied => ("denied", "wrong name, password or token".to_owned()),
        Denial::Full => ("full", format!("at most {ACCOUNTS_MAX} accounts")),
    }
}
