//! Asking a pprof URL: plain HTTP to hosts that may be asked, everything bounded.

use crate::clock::Clock;
use model::{Endpoint, Tick};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest answer, bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Longest head of an answer, bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long connecting may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// From one look whether it is to stop to the next.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Where a URL leads, if it may be asked: loopback, private networks, and hosts permitted by name.
pub(super) fn address(url: &str, allowed: &[String]) -> Result<(Endpoint, SocketAddr), String> {
    let endpoint = Endpoint::parse(url)?;
    let host = endpoint.host.as_str();
    let mut found = (host, endpoint.port)
        .to_socket_addrs()
        .map_err(|error| format!("cannot find the host `{host}`: {error}"))?;
    let address = found.next().ok_or_else(|| format!("the host `{host}` has no address"))?;
    match is_near(address.ip()) || allowed.iter().any(|allowed| allowed == host) {
        true => Ok((endpoint, address)),
        false => Err(format!(
            "{host} ({}) is neither on loopback nor in a private network; say so with \
             --i-am-allowed-to-load {host} if it may be profiled",
            address.ip()
        )),
    }
}

fn is_near(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

/// Whether something listens there.
pub(super) fn reach(url: &str, allowed: &[String]) -> Result<(), String> {
    let (_, address) = address(url, allowed)?;
    TcpStream::connect_timeout(&address, CONNECT_WITHIN)
        .map(drop)
        .map_err(|error| format!("{url}: {error}; is the server running, with its profiler on?"))
}

/// The body of the answer to a request that is to look for `seconds`; given up at `deadline`.
pub(super) fn fetch(
    url: &str,
    allowed: &[String],
    seconds: u64,
    (clock, deadline): (Clock, Tick),
    stop: &Arc<AtomicBool>,
) -> Result<Vec<u8>, String> {
    let (endpoint, address) = address(url, allowed)?;
    let path = match endpoint.path.contains("seconds=") {
        true => endpoint.path.clone(),
        false => {
            let mark = if endpoint.path.contains('?') { '&' } else { '?' };
            format!("{}{mark}seconds={seconds}", endpoint.path)
        }
    };
    let ask = || -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&address, CONNECT_WITHIN)?;
        stream.set_write_timeout(Some(CONNECT_WITHIN))?;
        stream.set_read_timeout(Some(LOOK_EVERY))?;
        // HTTP/1.0: the answer comes in one piece and ends with the connection (RFC 1945).
        let host = endpoint.authority();
        let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        Ok(stream)
    };
    let mut stream = ask().map_err(|error| format!("{url}: {error}"))?;
    let mut answer = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return body(&answer).map_err(|why| format!("{url} {why}")),
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::TimedOut
                        | io::ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(format!("{url}: {error}")),
        }
        if answer.len() > ANSWER_BYTES_MAX {
            return Err(format!("{url} answers more than {} MiB", ANSWER_BYTES_MAX >> 20));
        }
        if stop.load(Ordering::Relaxed) || clock.now() > deadline {
            return Err(format!("{url} did not answer in time"));
        }
    }
}

/// The body of a whole answer.
fn body(answer: &[u8]) -> Result<Vec<u8>, String> {
    let end = answer[..answer.len().min(HEAD_BYTES_MAX)]
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .ok_or("does not answer in HTTP")?;
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let body = &answer[end + 4..];
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split_whitespace().nth(1)).unwrap_or("nothing");
    if status != "200" {
        let words: String = String::from_utf8_lossy(body).chars().take(120).collect();
        let words: Vec<&str> = words.split_whitespace().collect();
        return Err(format!("answers {status}: {}", words.join(" ")));
    }
    if lines.any(|line| line.starts_with("transfer-encoding:") && line.contains("chunked")) {
        return Err("answers in chunks, which HTTP/1.0 does not have".into());
    }
    Ok(body.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_near_by_or_permitted() {
        let is_fine = |url: &str, allowed: &[&str]| {
            let allowed: Vec<String> = allowed.iter().map(|host| (*host).to_owned()).collect();
            address(url, &allowed).is_ok()
        };
        assert!(is_fine("http://127.0.0.1:6060/debug/pprof/profile", &[]));
        assert!(is_fine("http://[::1]/", &[]) && is_fine("http://192.168.1.9/", &[]));
        assert!(!is_fine("http://8.8.8.8/", &[]) && !is_fine("http://8.8.8.8/", &["8.8.4.4"]));
        assert!(is_fine("http://8.8.8.8/", &["8.8.8.8"]));
    }

    #[test]
    fn answers_are_taken_apart() {
        let told = |text: &str| body(text.as_bytes()).map(|body| body.len());
        assert_eq!(told("HTTP/1.0 200 OK\r\nA: b\r\n\r\nxyz"), Ok(3));
        for (text, what) in [
            ("", "HTTP"),
            ("HTTP/1.0 404 Not Found\r\n\r\nnothing\nhere", "404: nothing here"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0", "chunks"),
        ] {
            let why = told(text).unwrap_err();
            assert!(why.contains(what), "{why}");
        }
    }
}
