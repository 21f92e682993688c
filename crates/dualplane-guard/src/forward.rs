//! The way of one request: read, priced, admitted, sent, followed.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dualplane_admission::cost::Range;
use dualplane_admission::server::Health;
use dualplane_admission::template::Texts;
use dualplane_admission::{Code, Grant, Request as Asking};
use dualplane_wire::Broken;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Version};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body as _, Bytes, Incoming};

use crate::access::Entry;
use crate::answer::{Answer, Asked, Told};
use crate::ask::{Api, Ask, read};
use crate::body::{Sent, Unread, read_whole};
use crate::config::{Checked, Target};
use crate::exchange::{Arriving, Failed, Outgoing, is_stream};
use crate::heads::{REQUEST_ID, strip, strip_request, towards};
use crate::held::Permit;
use crate::pool;
use crate::prompts::By;
use crate::refuse::Reply;
use crate::state::State;
use crate::traces::Place;
use crate::watch;

/// For a count of tokens by the server itself; without it, the estimate is taken.
const TOKENIZE: Duration = Duration::from_secs(2);

/// Answers one request; `caller` is its address.
///
/// # Errors
/// None: what goes wrong is an answer.
pub fn handle(
    state: Arc<State>,
    caller: Arc<str>,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<Answer>, Infallible>> + Send {
    // A block holds each of these once; a function's own arguments would stand in it twice.
    let (mut head, body) = request.into_parts();
    async move {
        let under_way = UnderWay::new(&state);
        let api = Api::of(&head.method, head.uri.path());
        let given = head.headers.get(REQUEST_ID).filter(|v| v.len() <= 128).cloned();
        let id = given.unwrap_or_else(|| {
            HeaderValue::try_from(state.next_id()).unwrap_or_else(|_| HeaderValue::from_static("dualplane"))
        });
        let place = state.traces.as_ref().map(|t| Place::of(&head.headers, t.share));
        let told = state.access.is_on() || place.is_some_and(|p| p.is_kept());
        let words = id.to_str().unwrap_or_default();
        let mut entry = told.then(|| Entry::new(words, head.method.as_str(), head.uri.path(), place));
        if let Some(place) = place {
            place.tell(&mut head.headers);
        }
        let answer = match api {
            Some(api) => asked(&state, &caller, &mut head, body, api, &id, &mut entry).await,
            None => Box::pin(passes(&state, &caller, &mut head, body, &id, &mut entry)).await,
        };
        let mut response = match answer {
            Ok(response) => {
                state.endings.count(api, response.status().as_u16(), "");
                response
            }
            Err(reply) => {
                state.endings.count(api, reply.status, reply.code);
                if let Some(mut entry) = entry.take() {
                    entry.answered(None, reply.status);
                    state.record(&entry.code(reply.code));
                }
                reply.answer()
            }
        };
        response.headers_mut().entry(REQUEST_ID).or_insert(id);
        response.body_mut().until_its_end(under_way);
        Ok(response)
    }
}

/// A request that is under way: until the last byte of its answer is on its way, or its caller went.
pub struct UnderWay(Arc<State>);

impl UnderWay {
    fn new(state: &Arc<State>) -> Self {
        state.under_way.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(state))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request that costs memory.
async fn asked(
    state: &Arc<State>,
    caller: &str,
    head: &mut Parts,
    body: Incoming,
    api: Api,
    id: &HeaderValue,
    entry: &mut Option<Entry>,
) -> Result<Response<Answer>, Reply> {
    if state.is_closed() {
        let (code, message) = (Code::Draining, "this guard is about to end; send the request again");
        return Err(Reply { retry_after: Some(1), ..Reply::new(code.status(), code.word(), message) });
    }
    let config = state.config();
    let tenant = config.by.of(&head.headers);
    if let Some(e) = entry {
        e.asked(&tenant, api.word());
    }
    let priority = header(&head.headers, &config.priority).unwrap_or(0).min(9);
    let max_wait = header(&head.headers, &config.max_wait);
    let asking = |ask: &Ask, bytes: u64, calibration: &_, counted| {
        let shape = ask.shape(api, bytes, calibration, counted);
        let pool = pool::of(&config.rules, ask, shape.prompt.high);
        Asking {
            tenant: tenant.clone(),
            path: api.word(),
            bucket: ask.bucket(bytes),
            shape,
            pool,
            priority: u8::try_from(priority).unwrap_or(0),
            max_wait,
            bytes,
        }
    };
    // A form passes in parts: its size is known by what it declares, else as large as it may be.
    if api.is_form() {
        let bytes = body.size_hint().exact().unwrap_or(config.body);
        if bytes > config.body {
            let message = format!("the body has {bytes} bytes, and limits.body allows {}", config.body);
            return Err(Reply::new(413, "body_too_large", message));
        }
        let ask = Ask { media_bytes: bytes, ..Ask::default() };
        // Nothing of it is held here.
        let asking =
            Asking { bytes: 0, ..asking(&ask, bytes, &state.calibration(""), Some(Range::default())) };
        // Its way takes much room, and is rare.
        return Box::pin(send_once(state, caller, head, body, asking, id, entry, api)).await;
    }
    if head.headers.get(CONTENT_ENCODING).is_some_and(|e| e != "identity") {
        let message = "the body is compressed, so its cost cannot be read; send it as it is";
        return Err(Reply::new(415, "compressed_body", message));
    }
    let (bytes, room) = match read_whole(state, &config, body).await {
        Ok(all) => all,
        Err(Unread::Reply(reply)) => return Err(reply),
        Err(Unread::Gone) => return Err(Reply::new(400, "body_broken", "the body ended before its end")),
    };
    let ask = read(api, &bytes).map_err(|e| Reply::new(400, "body_not_read", e))?;
    let model = ask.model.clone().unwrap_or_default();
    let (counted, texts) = tokens_of(state, &config, api, &ask, &bytes).await;
    let length = bytes.len() as u64;
    let mut asking = asking(&ask, length, &state.calibration(&model), counted);
    let shares = config.targets.iter().all(|t| t.said.prefix_cache);
    asking.shape.prefix = asking.shape.prefix.filter(|_| shares);
    let (permit, grant) = state.admit(asking).await.map_err(Reply::from)?;
    note(entry, grant);
    // What else went into a prompt, the server's count would be taken for that of its text.
    let text = (ask.images + ask.media_bytes + ask.numbers == 0 && ask.batch <= 1).then_some(Told {
        bytes: ask.text_bytes,
        messages: ask.messages.max(1),
        texts: texts.filter(|_| !ask.tools),
    });
    strip_request(&mut head.headers);
    let asked = Asked { api, model, text, stream: ask.stream };
    let answer = send_whole(state, caller, head, bytes, permit, id, entry, asked).await;
    drop(room);
    answer
}

fn note(entry: &mut Option<Entry>, grant: Grant) {
    if let Some(e) = entry {
        e.admitted(grant.kv, grant.waited);
    }
}

fn header(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

/// The tokens of a prompt: the server's own count, else by the model's tokenizer, with the texts that were counted.
async fn tokens_of(
    state: &Arc<State>,
    config: &Checked,
    api: Api,
    ask: &Ask,
    body: &Bytes,
) -> (Option<Range>, Option<Texts>) {
    let by_server = matches!(api, Api::Chat | Api::Completions) && ask.images + ask.media_bytes == 0;
    let counted = if by_server { count(state, config, body).await } else { None };
    if let Some(n) = counted {
        state.note_counted(By::Server);
        return (Some(Range::exact(n)), None);
    }
    let model = ask.model.as_deref().unwrap_or_default();
    let texts = match config.tokenizers.of(model) {
        Some(tokenizer) => tokenizer.texts(api, ask, body).await,
        None => None,
    };
    // A tokenizer that is not believed counts on, so that it may be believed again.
    let range = texts.as_ref().and_then(|texts| state.by_template(model, texts));
    state.note_counted(if range.is_some() { By::Tokenizer } else { By::Bytes });
    (range.map(|r| r.plus(Range::exact(ask.numbers))), texts)
}

/// Asks a server that is configured so for the tokens of a prompt.
async fn count(state: &Arc<State>, config: &Checked, body: &Bytes) -> Option<u64> {
    let target = config.targets.iter().find(|t| t.said.tokenize)?;
    let path = [target.prefix.as_str(), "/tokenize"];
    let body = Sent::Whole(body.clone());
    let mut request = Outgoing::new(target.peer.clone(), &Method::POST, path, body).with_own_host();
    request.line(CONTENT_TYPE.as_str(), b"application/json");
    let answer = tokio::time::timeout(TOKENIZE, async {
        let response = state.send(request).await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let body = Limited::new(response.into_body(), 64 << 20).collect().await.ok()?.to_bytes();
        #[derive(serde::Deserialize)]
        struct Counted {
            count: u64,
        }
        serde_json::from_slice::<Counted>(&body).ok().map(|c| c.count)
    });
    answer.await.ok().flatten()
}

/// Sends a request whose body was read: to another server where one does not take the connection, as nothing was sent then.
#[expect(clippy::too_many_arguments, reason = "all of it belongs to one request")]
async fn send_whole(
    state: &Arc<State>,
    caller: &str,
    head: &Parts,
    bytes: Bytes,
    mut permit: Permit,
    id: &HeaderValue,
    entry: &mut Option<Entry>,
    asked: Asked,
) -> Result<Response<Answer>, Reply> {
    loop {
        let (server, target) = permit.at()?;
        let request = towards(&target, head, caller, id, Sent::Whole(bytes.clone()))?;
        match state.send(request).await {
            Ok(response) => {
                return Ok(followed(state, response, Some(permit), server, &target, entry, Some(asked)));
            }
            Err(Failed::Unreached(_)) => {
                let death = watch::look_after_death(state, server, true);
                if !permit.move_on() {
                    return Err(Reply::died(&target.name, death, false));
                }
            }
            Err(e) => return Err(failed(state, server, &target, e)),
        }
    }
}

/// Admits and sends a request whose body passes: it can be sent once.
#[expect(clippy::too_many_arguments, reason = "all of it belongs to one request")]
async fn send_once(
    state: &Arc<State>,
    caller: &str,
    head: &mut Parts,
    body: Incoming,
    asking: Asking,
    id: &HeaderValue,
    entry: &mut Option<Entry>,
    api: Api,
) -> Result<Response<Answer>, Reply> {
    let (permit, grant) = state.admit(asking).await.map_err(Reply::from)?;
    note(entry, grant);
    strip_request(&mut head.headers);
    let config = state.config();
    let idle = Duration::from_secs(config.config.limits.body_idle_seconds);
    let sent = Sent::passing(body, config.body, idle);
    let (server, target) = permit.at()?;
    let request = towards(&target, head, caller, id, sent)?;
    match state.send(request).await {
        Ok(response) => {
            let asked = Asked { api, model: String::new(), text: None, stream: false };
            Ok(followed(state, response, Some(permit), server, &target, entry, Some(asked)))
        }
        Err(e) => Err(failed(state, server, &target, e)),
    }
}

/// Why a request got no answer: the caller's body, the server's head, or the server.
fn failed(state: &State, server: usize, target: &Target, e: Failed) -> Reply {
    match e {
        Failed::Body(why) => Reply::new(400, "body_broken", format!("the body was not passed on: {why}")),
        Failed::Broken(Broken::HeadTooLarge) => {
            let message =
                format!("the head of the answer of {} has more than 64 KiB or 128 lines", target.name);
            Reply::new(502, "answer_head_too_large", message)
        }
        Failed::Broken(_) => Reply::died(&target.name, watch::look_after_death(state, server, false), true),
        Failed::Unreached(_) => {
            Reply::died(&target.name, watch::look_after_death(state, server, true), false)
        }
    }
}

/// A request that costs no memory that we know of.
async fn passes(
    state: &Arc<State>,
    caller: &str,
    head: &mut Parts,
    body: Incoming,
    id: &HeaderValue,
    entry: &mut Option<Entry>,
) -> Result<Response<Answer>, Reply> {
    if head.method == Method::CONNECT {
        return Err(Reply::new(405, "no_tunnel", "the guard opens no tunnels"));
    }
    // Any other protocol that is offered may be declined by an answer in this one (RFC 9110, 7.8).
    let wants = head.headers.get_all(UPGRADE).iter().filter_map(|v| v.to_str().ok());
    if wants.into_iter().any(|v| v.to_ascii_lowercase().contains("websocket")) {
        let message = "the guard passes no WebSockets, as it could not count what goes through them; connect to the server itself";
        return Err(Reply::new(501, "no_websocket", message));
    }
    let config = state.config();
    let (server, target) = least_busy(state)
        .ok_or_else(|| Reply { retry_after: Some(5), ..Reply::new(503, "no_server", "no server is up") })?;
    strip_request(&mut head.headers);
    let idle = Duration::from_secs(config.config.limits.body_idle_seconds);
    let sent =
        if body.is_end_stream() { Sent::Whole(Bytes::new()) } else { Sent::passing(body, config.body, idle) };
    let request = towards(&target, head, caller, id, sent)?;
    match state.send(request).await {
        Ok(response) => Ok(followed(state, response, None, server, &target, entry, None)),
        Err(e) => Err(failed(state, server, &target, e)),
    }
}

fn least_busy(state: &State) -> Option<(usize, Arc<Target>)> {
    let gate = state.gate();
    let servers = gate.admission.servers();
    let current = gate.current.iter().copied().filter_map(|n| Some((n, servers.get(n)?)));
    // Whoever asks for /health of a lone server that is down hears it from that server's port.
    let up = |s: &dualplane_admission::server::Server| s.health() != Health::Down;
    let (n, _) = current.min_by_key(|(_, s)| (!up(s), s.running()))?;
    gate.targets.get(n).map(|t| (n, Arc::clone(t)))
}

/// An answer on its way back.
fn followed(
    state: &Arc<State>,
    response: Response<Arriving>,
    permit: Option<Permit>,
    server: usize,
    target: &Target,
    entry: &mut Option<Entry>,
    asked: Option<Asked>,
) -> Response<Answer> {
    let (mut head, body) = response.into_parts();
    // Its length stays: of an answer to HEAD and of one whole body it is right; a chunked one has none.
    strip(&mut head.headers);
    head.version = Version::HTTP_11;
    let streams = is_stream(&head.headers);
    let mut entry = entry.take();
    if let Some(e) = &mut entry {
        e.answered(Some(&target.name), head.status.as_u16());
    }
    let ok = head.status.is_success();
    Response::from_parts(head, Answer::followed(body, state, permit, server, entry, asked, (streams, ok)))
}
