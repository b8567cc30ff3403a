//! Whose metrics a run reads: servers the scenario names, and the target where its folder says.

use crate::failure::Failure;
use crate::site::{self, Site};
use engine::target::Running;
use engine::{Asked, MetricSource};
use model::metric::PROMQL;
use model::{Endpoint, MetricsAt, Plan, Prometheus, Quantity};
use std::net::ToSocketAddrs;

/// The servers that the scenario names. Mistakes are told before anything is started.
pub(crate) fn elsewhere(
    plan: &Plan,
    site: &Site,
    allowed: &[String],
) -> Result<Vec<MetricSource>, Failure> {
    let mut sources = Vec::new();
    for server in &plan.probes.prometheus {
        match &server.at {
            MetricsAt::Target => check_target(plan, site)?,
            MetricsAt::Url(url) => {
                let mut source = source(url, allowed, server.every_ns)?;
                source.asked = Asked::Metrics(server.clone());
                sources.push(source);
            }
        }
    }
    for server in &plan.probes.promql {
        let source = source(&server.url, allowed, server.every_ns)?;
        let asked = Asked::Queries(server.queries.clone());
        sources.push(MetricSource { name: PROMQL.into(), asked, ..source });
    }
    Ok(sources)
}

/// Refuses to read the metrics of a target that does not say where they are.
fn check_target(plan: &Plan, site: &Site) -> Result<(), Failure> {
    if matches!(site, Site::Own { spec, .. } if spec.metrics.is_some()) {
        return Ok(());
    }
    let mut thresholds = plan.thresholds.iter();
    let needs = thresholds.find(|t| matches!(t.quantity, Quantity::Metric { .. }));
    let who = match needs {
        Some(threshold) => format!("the threshold `{}` needs metrics", threshold.text),
        None => "`probes` asks for the target's metrics".to_owned(),
    };
    Err(Failure::usage(format!(
        "{who}, but the target `{}` does not say where it publishes them.\nGive the scenario a URL, \
         `probes: {{prometheus: {{url: \"http://127.0.0.1:9100/metrics\"}}}}`, or the folder of the \
         target a line `metrics: \"http://127.0.0.1:{{port.…}}/metrics\"` in target.yaml.",
        plan.target.name
    )))
}

/// A source of metrics; what is asked there is filled in by the caller.
fn source(url: &str, allowed: &[String], every_ns: u64) -> Result<MetricSource, Failure> {
    let endpoint = Endpoint::parse(url).map_err(Failure::usage)?;
    let address = site::addresses(url, allowed)?.first().copied();
    let address = address
        .ok_or_else(|| Failure::unmeasured(format!("cannot find the host `{}`", endpoint.host)))?;
    let authority = endpoint.authority();
    Ok(MetricSource {
        name: authority.clone(),
        address,
        authority,
        path: endpoint.path,
        every_ns,
        asked: Asked::Queries(Default::default()),
    })
}

/// The target's own metrics, once it has started: a source for each instance.
pub(crate) fn of_target(
    plan: &Plan,
    running: Option<&Running>,
) -> Result<Vec<MetricSource>, Failure> {
    let mut sources = Vec::new();
    let wanted = plan.probes.prometheus.iter().filter(|server| server.at == MetricsAt::Target);
    let wanted: Vec<&Prometheus> = wanted.collect();
    let urls = running.map(Running::metrics).unwrap_or_default();
    for (number, url) in urls.into_iter().enumerate() {
        let endpoint = Endpoint::parse(url).map_err(Failure::usage)?;
        let authority = endpoint.authority();
        let address = authority.to_socket_addrs().ok().and_then(|mut found| found.next());
        let Some(address) = address.filter(|_| endpoint.scheme == "http") else {
            let help = "`metrics` in target.yaml is not an http URL of this machine";
            return Err(Failure::usage(format!("{help}: {url}")));
        };
        let name = if number == 0 { "target".into() } else { format!("target-{}", number + 1) };
        sources.extend(wanted.iter().map(|server| MetricSource {
            name: name.clone(),
            address,
            authority: authority.clone(),
            path: endpoint.path.clone(),
            every_ns: server.every_ns,
            asked: Asked::Metrics((*server).clone()),
        }));
    }
    Ok(sources)
}
