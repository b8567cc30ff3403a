//! A desk: jobs are put on it, threads of its own do them, and the event loop is woken to fetch
//! what is done. It has no limit of its own: who puts jobs on it counts them and refuses.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use mio::Waker;

/// Jobs that wait, work under way in threads, and what they have done.
pub(crate) struct Desk<J, D> {
    shared: Arc<Shared<J, D>>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared<J, D> {
    waiting: Mutex<Waiting<J>>,
    arrived: Condvar,
    done: Mutex<Done<D>>,
    waker: Arc<Waker>,
}

struct Waiting<J> {
    jobs: VecDeque<J>,
    /// No more jobs come: the threads end once there are none.
    closed: bool,
}

struct Done<D> {
    list: Vec<D>,
    /// A thread has ended though the desk is open: it has panicked.
    failed: bool,
}

impl<J: Send + 'static, D: Send + 'static> Desk<J, D> {
    /// A desk at which nobody works yet; `waker` wakes who fetches what is done.
    pub(crate) fn new(waker: Arc<Waker>) -> Self {
        let waiting = Mutex::new(Waiting { jobs: VecDeque::new(), closed: false });
        let done = Mutex::new(Done { list: Vec::new(), failed: false });
        let shared = Arc::new(Shared { waiting, arrived: Condvar::new(), done, waker });
        Desk { shared, threads: Vec::new() }
    }

    /// Starts a thread that takes up to `most` jobs at a time.
    pub(crate) fn hire<W>(&mut self, name: &str, most: usize, mut work: W) -> io::Result<()>
    where
        W: FnMut(Vec<J>) -> Vec<D> + Send + 'static,
    {
        let shared = self.shared.clone();
        let body = move || {
            let _watch = Watch(&*shared);
            while let Some(jobs) = shared.next(most) {
                let mut done = work(jobs);
                lock(&shared.done).list.append(&mut done);
                let _ = shared.waker.wake(); // fails only when the loop is gone
            }
        };
        self.threads.push(std::thread::Builder::new().name(name.to_owned()).spawn(body)?);
        Ok(())
    }

    /// Puts jobs on the desk.
    pub(crate) fn put(&self, jobs: &mut Vec<J>) {
        lock(&self.shared.waiting).jobs.extend(jobs.drain(..));
        self.shared.arrived.notify_all();
    }

    /// Where another thread puts jobs.
    pub(crate) fn inlet(&self) -> Inlet<J, D> {
        Inlet(self.shared.clone())
    }

    /// Takes back jobs that nobody has begun; gives how many.
    pub(crate) fn withdraw(&self, is_it: impl Fn(&J) -> bool) -> usize {
        let jobs = &mut lock(&self.shared.waiting).jobs;
        let before = jobs.len();
        jobs.retain(|job| !is_it(job));
        before - jobs.len()
    }

    /// What was done since the last call, in the order of the jobs if one thread does them.
    pub(crate) fn fetch(&self) -> io::Result<Vec<D>> {
        let mut done = lock(&self.shared.done);
        if done.failed {
            return Err(io::Error::other("a thread of the server has panicked"));
        }
        Ok(std::mem::take(&mut done.list))
    }

    /// Ends the threads; jobs that nobody has begun are done first, or forgotten.
    pub(crate) fn close(&mut self, finish: bool) {
        {
            let mut waiting = lock(&self.shared.waiting);
            waiting.closed = true;
            if !finish {
                waiting.jobs.clear();
            }
        }
        self.shared.arrived.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // a panic was told by `fetch`
        }
    }
}

/// A place to put jobs on a desk.
pub(crate) struct Inlet<J, D>(Arc<Shared<J, D>>);

impl<J, D> Inlet<J, D> {
    /// Puts jobs on the desk.
    pub(crate) fn put(&self, jobs: impl IntoIterator<Item = J>) {
        lock(&self.0.waiting).jobs.extend(jobs);
        self.0.arrived.notify_all();
    }

    /// How many wait that nobody has begun.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.0.waiting).jobs.len()
    }
}

impl<J, D> Shared<J, D> {
    /// Waits for jobs; `None` once the desk is closed and empty.
    fn next(&self, most: usize) -> Option<Vec<J>> {
        let mut waiting = lock(&self.waiting);
        while waiting.jobs.is_empty() {
            if waiting.closed {
                return None;
            }
            waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let count = waiting.jobs.len().min(most);
        Some(waiting.jobs.drain(..count).collect())
    }
}

/// Notices the end of a thread, however it ends.
struct Watch<'a, J, D>(&'a Shared<J, D>);

impl<J, D> Drop for Watch<'_, J, D> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.done).failed = true;
            let _ = self.0.waker.wake(); // fails only when the loop is gone
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<J, D> Drop for Desk<J, D> {
    fn drop(&mut self) {
        lock(&self.shared.waiting).closed = true;
        self.shared.arrived.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // nobody is left to hear of a panic
        }
    }
}

#[cfg(test)]
mod tests {
    use mio::{Poll, Token};

    use super::*;

    fn desk<J: Send + 'static, D: Send + 'static>() -> (Poll, Desk<J, D>) {
        let poll = Poll::new().unwrap();
        let waker = Arc::new(Waker::new(poll.registry(), Token(0)).unwrap());
        (poll, Desk::new(waker))
    }

    #[test]
    fn one_thread_keeps_the_order_and_finishes_before_it_ends() {
        let (_poll, mut desk) = desk();
        desk.hire("doubling", 7, |jobs: Vec<u32>| {
            assert!((1..=7).contains(&jobs.len()));
            jobs.into_iter().map(|job| 2 * job).collect()
        })
        .unwrap();
        for chunk in 0..10 {
            desk.put(&mut (chunk * 10..chunk * 10 + 10).collect());
        }
        desk.close(true);
        assert_eq!(desk.fetch().unwrap(), (0..100).map(|n| 2 * n).collect::<Vec<u32>>());
    }

    #[test]
    fn what_nobody_has_begun_can_be_taken_back() {
        let (_poll, mut desk) = desk();
        desk.put(&mut (0..10).collect());
        assert_eq!(desk.withdraw(|job: &u32| *job < 4), 4);
        assert_eq!(desk.withdraw(|job| *job < 4), 0);
        desk.hire("copying", 1, |jobs: Vec<u32>| jobs).unwrap();
        desk.close(true);
        assert_eq!(desk.fetch().unwrap(), [4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn a_panic_is_told_and_closing_still_ends() {
        let (mut poll, mut desk) = desk();
        desk.hire("failing", 1, |_: Vec<()>| -> Vec<()> { panic!("on purpose") }).unwrap();
        desk.put(&mut vec![()]);
        poll.poll(&mut mio::Events::with_capacity(1), None).unwrap(); // woken by the end
        assert!(desk.fetch().is_err());
        desk.close(false);
    }
}
