//! Starting a target as a child process, knowing when it is ready, and stopping it.

use super::folder::TargetFolder;
use super::prepare::{carry_out, command, prepare};
use super::spec::{Need, Spec, fill};
use crate::clock::Clock;
use crate::http;
use crate::probe::with_children;
use model::Endpoint;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How often a starting or stopping target is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Bytes of a log's end that are shown as last words.
const LAST_WORDS_BYTES: u64 = 2_000;
/// How many instances of a target there may be.
const INSTANCES_MAX: usize = 64;
/// Longest answer of a target's own figures, bytes.
const STATS_BYTES_MAX: usize = 64 << 10;
/// How long a target may take to tell them.
const STATS_WITHIN: Duration = Duration::from_secs(2);

/// A target that was started.
pub struct Running {
    /// Where it is reached (the first instance).
    pub url: String,
    /// Addresses of all instances.
    pub endpoints: Vec<SocketAddr>,
    /// Options for its protocol.
    pub options: BTreeMap<String, String>,
    /// Its version, or an empty string.
    pub version: String,
    instances: Vec<Instance>,
    stop_signal: libc::c_int,
    stop_within: Duration,
    folder: TargetFolder,
}

struct Instance {
    child: Child,
    log: Option<PathBuf>,
    stderr: PathBuf,
    stats: Option<String>,
    metrics: Option<String>,
}

/// Starts a target and waits until it is ready. `throng` is this program, for targets that are
/// part of it. The error is advice for the user.
pub fn launch(
    spec: &Spec,
    knobs: &BTreeMap<String, String>,
    throng: &Path,
    clock: &Clock,
) -> Result<Running, String> {
    check_needs(spec, knobs)?;
    let cache = prepare(spec, clock)?;
    let folder = TargetFolder::make()?;
    let mut running = Running {
        url: String::new(),
        endpoints: Vec::new(),
        options: BTreeMap::new(),
        version: String::new(),
        instances: Vec::new(),
        stop_signal: if spec.stop.signal == "INT" { libc::SIGINT } else { libc::SIGTERM },
        stop_within: spec.stop.within,
        folder,
    };
    let mut blanks = spec.knob_blanks(knobs);
    blanks.insert("throng".into(), throng.display().to_string());
    blanks.insert("folder".into(), home(spec));
    if let Some(cache) = cache {
        blanks.insert("cache".into(), cache.display().to_string());
    }
    for number in 0..instances(spec, knobs)? {
        running.start_instance(spec, number, blanks.clone(), clock)?;
    }
    running.version = version(spec, &blanks).unwrap_or_default();
    Ok(running)
}

/// How many instances of a target these knobs ask for, among which people are shared out.
pub fn instances(spec: &Spec, knobs: &BTreeMap<String, String>) -> Result<usize, String> {
    let count = fill(&spec.instances, &spec.knob_blanks(knobs))?.parse().unwrap_or(0);
    match (1..=INSTANCES_MAX).contains(&count) {
        true => Ok(count),
        false => Err(format!("a target can have 1 to {INSTANCES_MAX} instances")),
    }
}

impl Running {
    /// Its processes.
    pub fn pids(&self) -> BTreeSet<u32> {
        self.instances.iter().map(|instance| instance.child.id()).collect()
    }

    /// What an instance that has ended by itself had to say; `None` while all are alive.
    pub fn died(&mut self) -> Option<String> {
        let ended =
            self.instances.iter_mut().find_map(|instance| match instance.child.try_wait() {
                Ok(Some(status)) => Some((status, instance.last_words())),
                _ => None,
            });
        ended.map(|(status, words)| format!("the target ended by itself ({status}).{words}"))
    }

    /// Where its instances publish their metrics; empty if they do not.
    pub fn metrics(&self) -> Vec<&str> {
        self.instances.iter().filter_map(|instance| instance.metrics.as_deref()).collect()
    }

    /// The target's own figures, summed over instances; empty if it has none.
    pub fn stats(&self) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for url in self.instances.iter().filter_map(|instance| instance.stats.as_deref()) {
            let figures: BTreeMap<String, f64> = fetch(url)
                .ok()
                .and_then(|body| serde_json::from_slice(&body).ok())
                .unwrap_or_default();
            for (name, value) in figures {
                *sums.entry(name).or_default() += value;
            }
        }
        sums
    }

    fn start_instance(
        &mut self,
        spec: &Spec,
        number: usize,
        mut blanks: BTreeMap<String, String>,
        clock: &Clock,
    ) -> Result<(), String> {
        let folder = self.folder.path.join(number.to_string());
        let owner = spec.user.as_deref().filter(|_| is_root()).map(find_user).transpose()?;
        copy_files(spec, &folder, owner).map_err(|error| {
            format!("cannot lay out the target in {}: {error}", folder.display())
        })?;
        blanks.insert("dir".into(), folder.display().to_string());
        let ports = free_ports(spec.ports.len()).map_err(|e| format!("no free port: {e}"))?;
        for (name, port) in spec.ports.iter().zip(&ports) {
            blanks.insert(format!("port.{name}"), port.to_string());
        }
        spec.fill_texts(&mut blanks)?;
        let port = spec.ports.iter().position(|name| *name == spec.ready.port);
        let port =
            port.map(|at| ports[at]).ok_or("`ready.port` in target.yaml is no port of it")?;
        let child = spawn(spec, &blanks, &folder, owner)?;
        let filled =
            |text: &Option<String>| text.as_ref().map(|text| fill(text, &blanks)).transpose();
        let mut instance = Instance {
            child,
            log: filled(&spec.log)?.map(PathBuf::from),
            stderr: folder.join("stderr.log"),
            stats: filled(&spec.stats.as_ref().map(|stats| stats.url.clone()))?,
            metrics: filled(&spec.metrics)?,
        };
        let ready = instance.wait_until_ready(port, spec.ready.within, clock);
        self.instances.push(instance);
        ready?;
        let url = fill(&spec.url, &blanks)?;
        let port = Endpoint::parse(&url)?.port;
        self.endpoints.push(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        if let Some(populate) = &spec.populate {
            let mut command = command(spec, &populate.command, &blanks, &folder, owner)?;
            let log = folder.join("populate.log");
            carry_out(&mut command, &log, populate.within, clock)
                .map_err(|why| format!("the target could not be populated {why}"))?;
        }
        if number == 0 {
            self.url = url;
            let options = spec.options.iter().map(|(k, v)| Ok((k.clone(), fill(v, &blanks)?)));
            self.options = options.collect::<Result<_, String>>()?;
            if let Some(dialect) = &spec.dialect {
                self.options.insert("dialect".into(), dialect.to_string());
            }
        }
        Ok(())
    }
}

fn signal(child: &Child, signal: libc::c_int) {
    // SAFETY: a signal to a child that has not been waited for: the number is still its.
    unsafe { libc::kill(child.id() as libc::pid_t, signal) };
}

/// Waits for a child's end. As soon as `is_enough` it is asked to end by itself.
pub fn wait_for(child: &mut Child, is_enough: impl Fn() -> bool) -> io::Result<ExitStatus> {
    let mut is_asked = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if is_enough() && !is_asked {
            signal(child, libc::SIGTERM);
            is_asked = true;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

impl Drop for Running {
    /// Stops all instances, kindly first, and clears up.
    fn drop(&mut self) {
        for instance in &self.instances {
            signal(&instance.child, self.stop_signal);
        }
        let clock = Clock::start();
        for instance in &mut self.instances {
            while matches!(instance.child.try_wait(), Ok(None)) {
                if clock.now().0 > self.stop_within.as_nanos() as u64 {
                    // It had its time; what it does not do by itself is done for it.
                    let _ = instance.child.kill();
                }
                std::thread::sleep(LOOK_EVERY);
            }
        }
        // A folder that cannot be removed lies in the system's temporary place.
        let _ = fs::remove_dir_all(&self.folder.path);
    }
}

impl Instance {
    /// Waits until the child or one of its own, not some other server, listens on the port.
    fn wait_until_ready(
        &mut self,
        port: u16,
        within: Duration,
        clock: &Clock,
    ) -> Result<(), String> {
        let deadline = clock.now() + within;
        let root = self.child.id();
        let own = || with_children(BTreeSet::from([root]));
        while !own().into_iter().any(|pid| is_listening(pid, port)) {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!(
                    "the target ended while starting ({status}).{}",
                    self.last_words()
                ));
            }
            if clock.now() > deadline {
                let within = within.as_secs_f64();
                return Err(format!(
                    "the target did not listen on its port {port} within {within} s.{}",
                    self.last_words()
                ));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// The end of its log, or of what it printed.
    fn last_words(&self) -> String {
        let tails = [self.log.as_deref(), Some(self.stderr.as_path())].into_iter().flatten();
        let words: Vec<String> =
            tails.filter_map(|path| tail(path).ok()).filter(|t| !t.is_empty()).collect();
        match words.is_empty() {
            true => " It left no message.".into(),
            false => format!(" Its last words:\n{}", words.join("\n")),
        }
    }
}

pub(super) fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(LAST_WORDS_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(LAST_WORDS_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines =
        text.lines().filter(|line| !line.trim().is_empty()).map(|line| format!("    {line}"));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// Whether the programs are installed that a target needs with these knobs; the error says how to
/// install the first that is missing.
pub fn check_needs(spec: &Spec, knobs: &BTreeMap<String, String>) -> Result<(), String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let is_there = |command: &str| {
        // Servers are often installed where only root looks.
        let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
        command.contains('/') && Path::new(command).exists()
            || folders.into_iter().any(|folder| folder.join(command).exists())
    };
    let placed = |text: &str| text.replace("{folder}", &home(spec));
    let mut needs = spec.needs.iter();
    let is_meant = |need: &Need| need.when.iter().all(|row| knobs.get(row.0) == Some(row.1));
    match needs.find(|need| is_meant(need) && !is_there(&placed(&need.command))) {
        None => Ok(()),
        Some(need) => Err(format!(
            "`{}` is not installed. Install it with\n\n    {}\n",
            placed(&need.command),
            placed(&need.install)
        )),
    }
}

/// The target's own folder, wherever the target runs.
fn home(spec: &Spec) -> String {
    fs::canonicalize(&spec.folder).unwrap_or_else(|_| spec.folder.clone()).display().to_string()
}

/// A fresh folder that a server under another user may enter.
fn copy_files(spec: &Spec, folder: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    fs::create_dir(folder)?;
    for name in &spec.files {
        let copy = folder.join(name);
        fs::copy(spec.folder.join(name), &copy)?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o644))?;
    }
    match owner {
        None => Ok(()),
        Some((uid, gid)) => std::os::unix::fs::chown(folder, Some(uid), Some(gid)),
    }
}

fn spawn(
    spec: &Spec,
    blanks: &BTreeMap<String, String>,
    folder: &Path,
    owner: Option<(u32, u32)>,
) -> Result<Child, String> {
    let output = File::create(folder.join("stderr.log")).map_err(|error| error.to_string())?;
    let errors = output.try_clone().map_err(|error| error.to_string())?;
    let mut command = command(spec, &spec.command, blanks, folder, owner)?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    // SAFETY: prctl only asks the kernel to end the child with its parent; it allocates nothing.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    let program = command.get_program().to_string_lossy().into_owned();
    command.spawn().map_err(|error| format!("cannot start `{program}`: {error}"))
}

fn is_root() -> bool {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// User and group number of a user of this machine.
fn find_user(name: &str) -> Result<(u32, u32), String> {
    let text = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let fields = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let number = |field: Option<&&str>| field.and_then(|field| field.parse().ok());
    fields
        .into_iter()
        .find(|fields| fields.first() == Some(&name))
        .and_then(|fields| Some((number(fields.get(2))?, number(fields.get(3))?)))
        .ok_or_else(|| {
            format!("there is no user `{name}` on this machine for the target to run as")
        })
}

/// Ports that are free now: all bound at once, so that they differ, and released together.
fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    let bind = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let listeners: Vec<TcpListener> = (0..count).map(bind).collect::<Result<_, _>>()?;
    listeners.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}

/// Whether that very process listens on the port: its descriptors against the kernel's table.
fn is_listening(pid: u32, port: u16) -> bool {
    let sockets: Vec<String> =
        ["tcp", "tcp6"].iter().flat_map(|table| listeners(pid, table, port)).collect();
    if sockets.is_empty() {
        return false;
    }
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut links = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    links.any(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str()))
}

/// The sockets that listen on a port. The kernel names them before all others, so the reading ends
/// behind them: a machine may have a hundred thousand connections.
fn listeners(pid: u32, table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let Ok(file) = File::open(format!("/proc/{pid}/net/{table}")) else { return Vec::new() };
    let suffix = format!(":{port:04X}");
    let lines = io::BufReader::new(file).lines().skip(1).map_while(Result::ok);
    lines
        .map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .take_while(|fields| fields.get(3).is_some_and(|state| state == LISTEN))
        .filter(|fields| fields.len() > 9 && fields[1].ends_with(&suffix))
        .map(|fields| format!("socket:[{}]", fields[9]))
        .collect()
}

fn version(spec: &Spec, blanks: &BTreeMap<String, String>) -> Option<String> {
    let version = spec.version.as_ref()?;
    let words: Vec<String> =
        version.command.iter().filter_map(|word| fill(word, blanks).ok()).collect();
    let (program, arguments) = words.split_first()?;
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let before = version.pattern.split('(').next().unwrap_or("").trim();
    let line = text.lines().find_map(|line| Some(line.split_once(before)?.1.trim()))?;
    line.split_whitespace().next().map(str::to_owned)
}

/// The body of a page of the target.
fn fetch(url: &str) -> Result<Vec<u8>, String> {
    let page = Endpoint::parse(url)?;
    let authority = page.authority();
    let mut addresses = authority.to_socket_addrs().map_err(|error| error.to_string())?;
    let request = http::Request {
        address: addresses.next().ok_or("no such host")?,
        authority: &authority,
        path: &page.path,
        within: STATS_WITHIN,
        body_bytes_max: STATS_BYTES_MAX,
    };
    let answer = http::get(request, &Clock::start(), &|| true)?;
    match answer.status {
        200 => Ok(answer.body),
        status => Err(format!("{url} answered {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(command: &str) -> Spec {
        let text = format!(
            "about: a test\nprotocol: none\nports: [p]\ncommand: [{command}]\n\
             ready: {{port: p, within: 300ms}}\nurl: \"ws://127.0.0.1:{{port.p}}/\"\n"
        );
        Spec::parse(&text, "test").unwrap()
    }

    fn try_launch(spec: &Spec) -> String {
        match launch(spec, &BTreeMap::new(), Path::new("throng"), &Clock::start()) {
            Ok(_) => "started".into(),
            Err(why) => why,
        }
    }

    #[test]
    fn what_does_not_start_says_why() {
        let missing = "about: x\nprotocol: p\nneeds: [{command: no-such-server, install: apt-get install it}]\n\
                       ports: [p]\ncommand: [no-such-server]\nready: {port: p, within: 1s}\nurl: u\n";
        let missing = try_launch(&Spec::parse(missing, "t").unwrap());
        assert!(
            missing.contains("not installed") && missing.contains("apt-get install it"),
            "{missing}"
        );
        let quits = try_launch(&spec("sh, -c, \"echo out of luck; exit 3\""));
        assert!(quits.contains("ended while starting") && quits.contains("out of luck"), "{quits}");
        let silent = try_launch(&spec("sleep, \"30\""));
        assert!(silent.contains("did not listen"), "{silent}");
    }

    #[test]
    fn what_only_a_knob_needs_is_asked_for_with_that_knob() {
        let text = "about: x\nprotocol: p\ncommand: [c]\nready: {port: x, within: 1s}\nurl: u\n\
                    needs: [{command: no-such-proxy, install: get it, when: {processes: \"2\"}}]\n";
        let spec = Spec::parse(text, "t").unwrap();
        let check = |processes: &str| {
            check_needs(&spec, &BTreeMap::from([("processes".to_owned(), processes.to_owned())]))
        };
        assert_eq!(check("1"), Ok(()));
        assert!(check("2").unwrap_err().contains("no-such-proxy"));
    }

    #[test]
    fn a_port_counts_only_for_the_process_that_listens() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(is_listening(std::process::id(), port));
        assert!(!is_listening(1, port));
    }

    #[test]
    fn free_ports_differ() {
        let ports = free_ports(5).unwrap();
        assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), 5);
    }
}
