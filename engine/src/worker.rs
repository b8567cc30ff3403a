//! Worker processes: one process may hold only so many descriptors, so a large crowd is spread
//! over several processes of this same binary, which speak to their parent through pipes.

use crate::board::Board;
use crate::crew::{Crew, Job, Protocols};
use crate::limits;
use crate::shard::{Dispatch, Order};
use model::SourceId;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::BTreeSet;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Sender, channel};

/// Largest message between a worker and its parent, bytes.
const MESSAGE_BYTES_MAX: u32 = 256 << 20;

/// What the parent tells a worker first.
#[derive(Serialize, Deserialize)]
struct Assignment {
    job: Job,
    sources: Range<SourceId>,
    rooms: u32,
}

/// A worker process, as its parent sees it.
pub struct Worker {
    child: Child,
    orders: BufWriter<ChildStdin>,
}

impl Worker {
    /// Starts a worker of the program `exe` (whose `worker` subcommand calls [`serve`]).
    pub fn start(
        exe: &Path,
        job: &Job,
        sources: Range<SourceId>,
        dispatches: Sender<Dispatch>,
    ) -> io::Result<Worker> {
        let mut child =
            Command::new(exe).arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both were piped");
        };
        let mut orders = BufWriter::new(stdin);
        let rooms = job.plan.rooms.len() as u32;
        let mine = sources.clone();
        write(&mut orders, &Assignment { job: job.clone(), sources, rooms })?;
        std::thread::Builder::new().name("worker-reader".into()).spawn(move || {
            pass_on(&mut BufReader::new(stdout), mine, &dispatches);
        })?;
        Ok(Worker { child, orders })
    }

    /// The worker's process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Tells the worker's shards.
    pub fn order(&mut self, order: &Order) {
        // A worker that is gone is noticed by its missing intervals.
        let _ = write(&mut self.orders, order);
    }

    /// Waits until the worker has ended; gives how, if not well.
    pub fn join(self) -> Option<String> {
        let Worker { mut child, orders } = self;
        drop(orders);
        match child.wait() {
            Ok(status) if status.success() => None,
            Ok(status) => Some(format!("worker process {} ended: {status}", child.id())),
            Err(error) => Some(format!("worker process {}: {error}", child.id())),
        }
    }
}

/// Passes on what a worker says. However it ends, its shards end with it: one that has not said so
/// itself is lost, and what it still had to say with it.
fn pass_on(stdout: &mut impl Read, mine: Range<SourceId>, dispatches: &Sender<Dispatch>) {
    let mut left: BTreeSet<SourceId> = mine.collect();
    while let Ok(Some(dispatch)) = read(stdout) {
        if let Dispatch::Ended { source } = dispatch {
            left.remove(&source);
        }
        // Nobody listens any more when the run is being torn down.
        let _ = dispatches.send(dispatch);
    }
    for source in left {
        let _ = dispatches.send(Dispatch::Lost { source });
    }
}

/// The whole life of a worker process. The error is for the parent's terminal.
pub fn serve(protocols: Protocols) -> Result<(), String> {
    limits::raise_descriptors();
    let mut stdin = BufReader::new(io::stdin());
    let assignment: Option<Assignment> = read(&mut stdin).map_err(|error| error.to_string())?;
    let Some(Assignment { job, sources, rooms }) = assignment else {
        return Err("`throng worker` is started by throng itself".into());
    };
    let board = Board::open(&job.board, rooms as usize, job.sources.into())
        .map_err(|error| format!("worker: the board: {error}"))?;
    let (dispatches, inbox) = channel();
    let crew = job.start(board, sources, protocols, &dispatches)?;
    drop(dispatches);
    let reader = std::thread::spawn(move || obey(&mut stdin, &crew));
    let mut stdout = BufWriter::new(io::stdout());
    for dispatch in inbox {
        if write(&mut stdout, &dispatch).is_err() {
            break;
        }
    }
    // The reader ends with the parent's end of the pipe, which may outlive this process.
    drop(reader);
    Ok(())
}

/// Passes the parent's orders on; a parent that is gone means stop.
fn obey(stdin: &mut impl Read, crew: &Crew) {
    while let Ok(Some(order)) = read::<Order>(stdin) {
        crew.order(&order);
    }
    crew.order(&Order::Stop);
}

fn write(out: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let bytes = postcard::to_stdvec(message).map_err(io::Error::other)?;
    out.write_all(&(bytes.len() as u32).to_le_bytes())?;
    out.write_all(&bytes)?;
    out.flush()
}

/// The next message; `None` at the end.
fn read<T: DeserializeOwned>(input: &mut impl Read) -> io::Result<Option<T>> {
    let mut size = [0; 4];
    match input.read_exact(&mut size) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    let size = u32::from_le_bytes(size);
    if size > MESSAGE_BYTES_MAX {
        return Err(io::Error::other("a message between processes is too large"));
    }
    let mut bytes = vec![0; size as usize];
    input.read_exact(&mut bytes)?;
    postcard::from_bytes(&bytes).map(Some).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Interval, Measure, Tick};

    #[test]
    fn what_is_written_is_read() {
        let mut interval = Interval::new(7);
        interval.measure(Measure::Join).latency.record(5_000_000);
        let sent = [
            Dispatch::Interval(Box::new(interval)),
            Dispatch::Status(Box::default()),
            Dispatch::Ended { source: 3 },
        ];
        let mut pipe = Vec::new();
        sent.iter().for_each(|dispatch| write(&mut pipe, dispatch).unwrap());
        write(&mut pipe, &Order::Begin { phase: 1, at: Tick(5) }).unwrap();
        let mut pipe = pipe.as_slice();
        for dispatch in sent {
            assert_eq!(read::<Dispatch>(&mut pipe).unwrap(), Some(dispatch));
        }
        assert_eq!(read::<Order>(&mut pipe).unwrap(), Some(Order::Begin { phase: 1, at: Tick(5) }));
        assert_eq!(read::<Order>(&mut pipe).unwrap(), None);
    }

    #[test]
    fn a_shard_without_last_words_is_lost_wherever_its_worker_stops() {
        let interval = || Dispatch::Interval(Box::new(Interval::new(7)));
        let said = [interval(), Dispatch::Ended { source: 4 }, interval()];
        let said = said.into_iter().chain([Dispatch::Ended { source: 5 }]);
        let mut pipe = Vec::new();
        let mut ends = Vec::new();
        for dispatch in said {
            write(&mut pipe, &dispatch).unwrap();
            ends.push(pipe.len());
        }
        for length in 0..=pipe.len() {
            let (sender, heard) = channel();
            pass_on(&mut &pipe[..length], 4..6, &sender);
            drop(sender);
            let lost = heard.iter().filter_map(|dispatch| match dispatch {
                Dispatch::Lost { source } => Some(source),
                _ => None,
            });
            let want = [(4, ends[1]), (5, ends[3])];
            let want = want.into_iter().filter(|&(_, end)| length < end).map(|(source, _)| source);
            assert_eq!(lost.collect::<Vec<_>>(), want.collect::<Vec<_>>(), "{length} bytes");
        }
    }

    #[test]
    fn a_broken_pipe_is_an_error() {
        assert!(read::<Order>(&mut [9, 0, 0, 0, 1].as_slice()).is_err());
        assert!(read::<Order>(&mut [255, 255, 255, 255].as_slice()).is_err());
    }
}
