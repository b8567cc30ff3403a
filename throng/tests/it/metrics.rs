//! Thresholds on what probes read and on what servers publish, from a scenario to the verdict; and
//! servers of metrics that break every rule, which cost a run nothing but a note.

use crate::rig::{Answer, Busy, Folder, listener, read};
use results::run::METRICS;
use results::summary::Outcome;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most memory a run may need, KiB.
const PEAK_KIB: u64 = 200 << 10;
/// Series of a source that are kept.
const SERIES_MAX: usize = 1_000;

/// A few people who talk for some seconds.
const PEOPLE: &str = "rooms: [lobby]
crowds:
  people:
    size: 3
    journey: [login, join, {talk: {every: 300ms, for: 3s}}, leave, disconnect]
timeline: [{run: people at once}]
";

/// A server that answers each request, which it is told with its number, as it is told; it lives
/// as long as the tests.
fn serve(answer: impl Fn(TcpStream, u64, &str) + Send + Sync + 'static) -> SocketAddr {
    let listener = listener();
    let address = listener.local_addr().unwrap();
    let (count, answer) = (AtomicU64::new(0), Arc::new(answer));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (number, answer) = (count.fetch_add(1, Ordering::Relaxed), answer.clone());
            std::thread::spawn(move || {
                let mut asked = [0; 2_048];
                let length = stream.read(&mut asked).unwrap_or(0);
                let asked = String::from_utf8_lossy(&asked[..length]).into_owned();
                answer(stream, number, asked.split(' ').nth(1).unwrap_or_default());
            });
        }
    });
    address
}

/// Says something; whoever has heard enough hangs up.
fn say(mut stream: TcpStream, status: &str, body: &str) {
    let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\n\r\n{body}");
}

/// Publishes a counter that rises with every reading and a gauge that goes up and down, and answers
/// queries.
fn publisher() -> SocketAddr {
    serve(|stream, number, path| match path {
        "/metrics" => {
            let (hits, busy) = (100 + 10 * number, 1 + number % 2);
            let body = format!(
                "# TYPE hits_total counter\nhits_total{{code=\"200\"}} {hits}\n\
                 hits_total{{code=\"500\"}} 7\n# TYPE busy gauge\nbusy {busy}\n\
                 # TYPE heap_bytes gauge\nheap_bytes 2.5e6\nunwanted 1\n"
            );
            say(stream, "200 OK", &body);
        }
        "/prom/api/v1/query?query=sum%28busy%29" => {
            let result = "[{\"metric\":{\"job\":\"chat\"},\"value\":[1,\"42\"]}]";
            let data = format!("{{\"resultType\":\"vector\",\"result\":{result}}}");
            say(stream, "200 OK", &format!("{{\"status\":\"success\",\"data\":{data}}}"));
        }
        _ => say(stream, "400 Bad Request", "{\"status\":\"error\",\"error\":\"unknown words\"}"),
    })
}

/// The outcome of each threshold.
fn outcomes(answer: &Answer) -> Vec<(String, Outcome)> {
    let judged = answer.summary().thresholds;
    judged.into_iter().map(|judged| (judged.text, judged.outcome)).collect()
}

fn check_outcomes(answer: &Answer, want: &[(&str, Outcome)]) {
    let got = outcomes(answer);
    let got: Vec<_> = got.iter().map(|(text, outcome)| (text.as_str(), *outcome)).collect();
    assert_eq!(got, want, "{:#?}", answer.summary().thresholds);
}

#[test]
fn thresholds_on_processes_metrics_and_queries_are_kept_and_broken() {
    use Outcome::{Broken, Kept, Unmeasured};
    let at = publisher();
    let want = [
        ("target cpu: < 5000%", Kept),
        ("target cpu max: < 0.0001%", Broken),
        ("target cpu time: < 1h", Kept),
        ("target cpu per delivery: < 1ns", Broken),
        ("target memory: < 1KiB", Broken),
        ("target memory mean: < 4GiB", Kept),
        ("target threads: at least 1", Kept),
        ("target descriptors: < 1", Broken),
        ("generator memory: < 4GiB", Kept),
        ("metric busy: < 2", Broken),
        ("metric min(busy): <= 1", Kept),
        ("metric rate(hits_total{code=\"200\"}): > 1", Kept),
        ("metric increase(hits_total{code=\"500\"}): <= 0", Kept),
        ("metric heap_bytes: < 2MiB", Broken),
        ("metric up: at least 1", Kept),
        ("metric unwanted_total: < 1", Unmeasured),
        ("promql sum-busy: < 42", Broken),
        ("promql last(sum-busy{job=\"chat\"}): <= 42", Kept),
    ];
    let thresholds: String = want
        .iter()
        .map(|(text, _)| {
            let (name, bound) = text.split_once(": ").unwrap();
            format!("  '{name}': '{bound}'\n")
        })
        .collect();
    let scenario = format!(
        "target: yardstick\n{PEOPLE}thresholds:\n{thresholds}probes:\n\
         \x20 prometheus: {{url: 'http://{at}/metrics', every: 200ms, keep: [h*, busy]}}\n\
         \x20 promql: {{url: 'http://{at}/prom', every: 200ms, \
         queries: {{sum-busy: sum(busy), wrong: ')'}}}}\n"
    );
    let folder = Folder::new("metrics");
    let answer = folder.run_fit(&scenario, &[]);
    assert_eq!(answer.code, Some(1), "{}", answer.stderr);
    check_outcomes(&answer, &want);
    let notes = answer.summary().notes.join("\n");
    let told = "the query wrong: Prometheus says: unknown words";
    assert!(notes.contains(told) && notes.contains("readings failed"), "{notes}");
    let run = answer.load();
    let names: Vec<&str> = run.metrics.iter().map(|sample| sample.series.name.as_str()).collect();
    assert!(names.contains(&"heap_bytes") && !names.contains(&"unwanted"));
    let page = read(&folder.path("run/report.html"));
    assert!(page.contains("data-chart=\"metric-1\"") && page.contains("hits_total"));
    assert!(read(&folder.path("run/charts/metric-1.svg")).contains("busy"));
    // A reader survives a run that was killed in the middle of a row.
    let file = folder.path("run").join(METRICS);
    let text = read(&file);
    std::fs::write(&file, &text[..text.len() - 3]).unwrap();
    let torn = answer.load();
    assert_eq!(torn.metrics.len() + 1, run.metrics.len());
    assert!(torn.notes.iter().any(|note| note.contains(METRICS)));
}

#[test]
fn a_target_tells_where_it_publishes_metrics() {
    let at = publisher();
    let folder = Folder::new("own-metrics");
    let target = format!(
        "about: a yardstick\nprotocol: yardstick\nports: [chat]\n\
         command: [\"{{throng}}\", serve, --listen, \"127.0.0.1:{{port.chat}}\"]\n\
         ready: {{port: chat, within: 10s}}\nurl: \"ws://127.0.0.1:{{port.chat}}/ws\"\n\
         metrics: \"http://{at}/metrics\"\n"
    );
    folder.write("targets/own/target.yaml", &target);
    let scenario = format!("target: own\n{PEOPLE}thresholds: {{metric max(busy): '>= 2'}}\n");
    let answer = folder.run_fit(&scenario, &[]);
    assert_eq!(answer.code, Some(0), "{}\n{}", answer.stderr, answer.stdout);
    check_outcomes(&answer, &[("metric max(busy): >= 2", Outcome::Kept)]);
    let run = answer.load();
    assert!(run.metrics.iter().all(|sample| sample.series.source == "target"));
    assert!(run.metrics.iter().all(|sample| sample.series.name != "heap_bytes"));
}

#[test]
fn what_cannot_be_read_is_told_before_the_run() {
    let folder = Folder::new("no-metrics");
    let refused = |more: &str, words: &str| {
        let answer = folder.run(&format!("target: yardstick\n{PEOPLE}{more}"), &[]);
        assert_eq!(answer.code, Some(2), "{}", answer.stderr);
        assert!(answer.stderr.contains(words), "{}", answer.stderr);
        assert!(!folder.path("run").exists());
    };
    refused("thresholds: {metric busy: < 2}\n", "`metric busy: < 2` needs metrics");
    refused("probes: {prometheus: {keep: busy}}\n", "asks for the target's metrics");
    let stranger = "probes: {prometheus: {url: 'http://8.8.8.8/metrics'}}\n";
    refused(stranger, "--i-am-allowed-to-load 8.8.8.8");
}

/// Says something over and over until nobody listens.
fn forever(mut stream: TcpStream, begin: &str, again: &str) {
    let _ = stream.write_all(begin.as_bytes());
    while stream.write_all(again.as_bytes()).is_ok() {}
}

#[test]
fn hostile_servers_of_metrics_cost_a_note() {
    const OK: &str = "HTTP/1.1 200 OK\r\n\r\n";
    let nobody = listener().local_addr().unwrap();
    let rows: [(SocketAddr, &str); 9] = [
        (nobody, "cannot connect"),
        (serve(|stream, _, _| forever(stream, OK, "x 1\n")), "longer than"),
        (serve(|stream, _, _| forever(stream, "HTTP/1.1 200 OK\r\n", "a: b\r\n")), "the head"),
        (serve(|stream, _, _| drop((stream, std::thread::park()))), "no whole answer in time"),
        (serve(|stream, _, _| drop(stream)), "the answer"),
        (serve(|stream, _, _| say(stream, "500 Oh", "x 1\n")), "HTTP status 500"),
        (serve(|stream, _, _| say(stream, "200 OK", "\u{0}{{{\"\n\u{fffd} 1\n")), "is a metric"),
        (serve(|stream, _, _| say(stream, "200 OK", "x{a=\"\n".repeat(9).as_str())), "9 lines"),
        (
            serve(|stream, number, _| {
                let line = |i: u64| format!("x{{id=\"{}\"}} 1\n", number * 400 + i);
                say(stream, "200 OK", &(0..400).map(line).collect::<String>());
            }),
            "samples were left out",
        ),
    ];
    let mut servers: Vec<String> =
        rows.iter().map(|(at, _)| format!("{{url: 'http://{at}/', every: 500ms}}")).collect();
    servers[7] = servers[7].replace("500ms", "1h");
    let queries = rows[..8]
        .iter()
        .map(|(at, _)| format!("{{url: 'http://{at}/', every: 500ms, queries: {{x: up}}}}"));
    let scenario = format!(
        "target: yardstick\n{PEOPLE}thresholds: {{lost: 0}}\nprobes:\n  prometheus: [{}]\n  \
         promql: [{}]\n",
        servers.join(", "),
        queries.collect::<Vec<_>>().join(", ")
    );
    let folder = Folder::new("hostile-metrics");
    let answer = folder.run(&scenario, &[]);
    let summary = answer.summary();
    // What latencies are worth beside other work is not what is asked here.
    let is_fine = answer.code == Some(0) || summary.was_busy();
    assert!(is_fine, "{}\n{}", answer.stderr, answer.stdout);
    assert!(summary.seconds < 15.0 && answer.peak_kib < PEAK_KIB, "{} KiB", answer.peak_kib);
    let notes = summary.notes.join("\n");
    for (at, words) in &rows {
        let told = summary
            .notes
            .iter()
            .any(|note| note.contains(&format!("metrics of {at}: ")) && note.contains(words));
        assert!(told, "{at}: {words}\n{notes}");
    }
    let run = answer.load();
    let is_up = |sample: &&model::MetricSample| sample.series.name == "up" && sample.value > 0.0;
    let mut up: Vec<&str> =
        run.metrics.iter().filter(is_up).map(|sample| sample.series.source.as_str()).collect();
    up.dedup();
    assert_eq!(up, [rows[8].0.to_string()], "only the last one could be read");
    let mut series: Vec<_> = run.metrics.iter().map(|sample| &sample.series).collect();
    series.sort();
    series.dedup();
    assert!(series.len() <= SERIES_MAX + rows.len() * 2, "{} series", series.len());
}
