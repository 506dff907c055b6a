//! A browser without a window, driven through the pipe of its development tools.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long the browser may take to end.
const END: Duration = Duration::from_secs(20);
/// How long it may say nothing.
const ANSWER: Duration = Duration::from_secs(60);

/// A page that is open.
pub struct Browser {
    process: Child,
    to: Option<ChildStdin>,
    /// Its messages, each with the zero behind it.
    from: Receiver<Vec<u8>>,
    session: String,
    number: u64,
    /// The page was loaded since it was navigated to.
    loaded: bool,
    /// Errors of page and console since the last look.
    errors: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts Chromium; `None` where there is none.
    pub fn start() -> Option<Browser> {
        Command::new("chromium").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
        let profile = tempfile::tempdir().unwrap();
        // The development tools are on descriptors 3 and 4. The page is our own, and root has no
        // sandbox.
        let script = "exec chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --remote-debugging-pipe \
                      \"--user-data-dir=$0\" about:blank 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null";
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).arg(profile.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (to, mut output) = (process.stdin.take(), BufReader::new(process.stdout.take().unwrap()));
        let (heard, from) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let mut more = |bytes: &mut Vec<u8>| output.read_until(0, bytes).is_ok_and(|read| read > 0);
            while more(&mut bytes) && heard.send(std::mem::take(&mut bytes)).is_ok() {}
        });
        let session = String::new();
        let mut browser =
            Browser { process, to, from, session, number: 0, loaded: false, errors: Vec::new(), _profile: profile };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Calls a method of the development tools.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let to = self.to.as_mut().unwrap();
        to.write_all(format!("{message}\0").as_bytes()).and_then(|()| to.flush()).expect("the browser listens");
        loop {
            let answer = self.hear();
            if answer["id"] == json!(self.number) {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// The next message, noted where it tells of an error.
    fn hear(&mut self) -> Value {
        let bytes = self.from.recv_timeout(ANSWER).expect("the browser answers in time");
        let message: Value = serde_json::from_slice(&bytes[..bytes.len() - 1]).expect("a message is JSON");
        self.loaded |= message["method"] == "Page.loadEventFired";
        let entry = &message["params"];
        let is_error = match message["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => true,
            "Runtime.consoleAPICalled" => ["error", "warning", "assert"].iter().any(|kind| entry["type"] == *kind),
            "Log.entryAdded" => ["error", "warning"].iter().any(|level| entry["entry"]["level"] == *level),
            _ => false,
        };
        if is_error {
            self.errors.push(entry.to_string());
        }
        message
    }

    /// Shows a page in a window of so many pixels, with the user's wish for dark or light.
    pub fn show(&mut self, address: &str, width: u32, scheme: &str) {
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
        self.loaded = false;
        let shown = self.call("Page.navigate", json!({"url": address}));
        assert!(shown.get("errorText").is_none(), "{shown}");
        while !self.loaded {
            self.hear();
        }
    }

    /// The value of an expression in the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let result = self.call("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}));
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Errors of page and console since the last look.
    pub fn errors(&mut self) -> Vec<String> {
        std::mem::take(&mut self.errors)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends when nobody is at the other end of the pipe.
        drop(self.to.take());
        let end = Instant::now() + END;
        while Instant::now() < end {
            if let Ok(Some(_)) = self.process.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
