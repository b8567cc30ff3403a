//! PromQL queries: how they are asked, and what is read from the answers
//! (<https://prometheus.io/docs/prometheus/latest/querying/api/>).

use model::metric::{LABEL_BYTES_MAX, LABELS_MAX, Labels};
use serde_json::Value;
use std::fmt::Write;

/// The path that asks for the value of an expression now.
pub(super) fn path(prefix: &str, expression: &str) -> String {
    let mut path = format!("{}/api/v1/query?query=", prefix.trim_end_matches('/'));
    for byte in expression.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                path.push(byte.into());
            }
            // Writing into a string cannot fail.
            other => drop(write!(path, "%{other:02X}")),
        }
    }
    path
}

/// The values in an answer, with their labels. Values that are not finite are passed over.
pub(super) fn read(body: &[u8]) -> Result<Vec<(Labels, f64)>, String> {
    let answer: Value =
        serde_json::from_slice(body).map_err(|_| "the answer is not JSON of Prometheus")?;
    if answer["status"] != "success" {
        return Err(match answer["error"].as_str() {
            Some(error) => format!("Prometheus says: {error}"),
            None => "the answer is not one of Prometheus".into(),
        });
    }
    let result = &answer["data"]["result"];
    match answer["data"]["resultType"].as_str() {
        Some("scalar") => {
            Ok(value(result)?.map(|value| (Labels::new(), value)).into_iter().collect())
        }
        Some("vector") => {
            let mut values = Vec::new();
            for item in result.as_array().ok_or("the vector in the answer is none")? {
                if let Some(value) = value(&item["value"])? {
                    values.push((labels(&item["metric"])?, value));
                }
            }
            Ok(values)
        }
        Some(other) => {
            let other: String = other.chars().take(40).collect();
            Err(format!("its value is a {other}; only a vector or a scalar can be kept"))
        }
        None => Err("the answer is not one of Prometheus".into()),
    }
}

/// `[time, "value"]`
fn value(pair: &Value) -> Result<Option<f64>, String> {
    let value = pair[1].as_str().and_then(|text| text.parse::<f64>().ok());
    let value = value.ok_or("a value in the answer is no number")?;
    Ok(Some(value).filter(|value| value.is_finite()))
}

fn labels(metric: &Value) -> Result<Labels, String> {
    let pairs = metric.as_object().into_iter().flatten();
    let pairs = pairs.filter(|(name, _)| *name != "__name__");
    let labels: Labels = pairs
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    let is_long = |(name, value): &(String, String)| name.len().max(value.len()) > LABEL_BYTES_MAX;
    match labels.len() > LABELS_MAX || labels.iter().any(is_long) {
        true => Err("a series in the answer has too many or too long labels".into()),
        false => Ok(labels),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_made_fit_for_a_path() {
        let want = "/prom/api/v1/query?query=rate%28a%7Bb%3D%22c%20%C3%A9%22%7D%5B1m%5D%29";
        assert_eq!(path("/prom/", "rate(a{b=\"c é\"}[1m])"), want);
        assert_eq!(path("/", "up"), "/api/v1/query?query=up");
    }

    #[test]
    fn answers_are_read_or_refused() {
        let check = |body: &str, want: Result<&[f64], &str>| {
            let got = read(body.as_bytes());
            let values = got.clone().map(|all| all.iter().map(|v| v.1).collect::<Vec<_>>());
            match want {
                Ok(want) => assert_eq!(values.as_deref(), Ok(want), "{body}"),
                Err(why) => assert!(values.is_err_and(|e| e.contains(why)), "{body}: {got:?}"),
            }
        };
        let of = |kind: &str, result: &str| {
            format!(
                "{{\"status\":\"success\",\"data\":{{\"resultType\":\"{kind}\",\"result\":{result}}}}}"
            )
        };
        check(&of("scalar", "[1.5,\"2.5\"]"), Ok(&[2.5]));
        check(&of("scalar", "[1.5,\"NaN\"]"), Ok(&[]));
        let vector = "[{\"metric\":{\"__name__\":\"x\",\"a\":\"b\"},\"value\":[1,\"3\"]},\
                       {\"metric\":{},\"value\":[1,\"+Inf\"]}]";
        check(&of("vector", vector), Ok(&[3.0]));
        let read = read(of("vector", vector).as_bytes()).unwrap();
        assert_eq!(read[0].0, [("a".to_owned(), "b".to_owned())]);
        check(&of("vector", "[]"), Ok(&[]));
        check(&of("matrix", "[]"), Err("a matrix"));
        check(&of("vector", "7"), Err("vector"));
        check(&of("vector", "[{\"value\":[1]}]"), Err("no number"));
        let long =
            format!("[{{\"metric\":{{\"a\":\"{}\"}},\"value\":[1,\"1\"]}}]", "x".repeat(2_000));
        check(&of("vector", &long), Err("labels"));
        check("{\"status\":\"error\",\"error\":\"parse error\"}", Err("says: parse error"));
        check("{}", Err("not one of Prometheus"));
        check("<html>", Err("not JSON"));
        check(&"[".repeat(100_000), Err("not JSON"));
    }
}
