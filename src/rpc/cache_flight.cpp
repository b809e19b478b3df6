// See cache_flight.hpp.
#include "rpc/cache_flight.hpp"

#include <algorithm>

#include "message/read_error.hpp"
#include "message/transcoder.hpp"
#include "rpc/cached_method.hpp"
#include "rpc/invocation.hpp"

namespace wirecall::rpc {

std::optional<CachedValue> transcoded(LoopCodecs& codecs, const CachedValue& value, Encoding encoding) {
  Buffer json;
  if (value.encoding == Encoding::json) {
    json.append(value.bytes);
  } else {
    Buffer encoded{value.bytes};
    Reader& reader = *codecs.cursors(value.encoding).readers.reader;
    reader.reset(encoded.padded());
    std::string_view text;
    if (!reader.read_json(text)) return std::nullopt;
    json.append(text);
  }
  if (encoding == Encoding::json) return CachedValue{encoding, false, std::string{json.view()}};
  Writer& writer = *codecs.cursors(encoding).writer;
  Buffer encoded;
  writer.reset(encoded);
  writer.json(json.padded());
  if (writer.failed()) return std::nullopt;
  return CachedValue{encoding, true, std::string{encoded.view()}};
}

CacheFlight::CacheFlight(LoopCache& cache, std::string_view key, std::uint64_t hash, const Limits& limits,
                         MessageForm form)
    : cache_(&cache),
      key_(key),
      hash_(hash),
      limits_(limits),
      form_(form.natively ? form : MessageForm{}),
      peer_(cache.method_.nobody(), *this, limits_, cache.loop_, nullptr),
      pending_(peer_, std::make_shared<PeerLoad>()) {
  peer_.form = form_;
  cache.flights_.insert(this);
}

CacheFlight::~CacheFlight() {
  if (cache_ != nullptr) cache_->flights_.erase(this);
}

void CacheFlight::add(Call& call) {
  std::stop_token stop = call.stop_token();
  const Encoding encoding = call.form().written();
  Waiter& waiter = waiters_.emplace_back(Answered{.sink = call.detach(), .encoding = encoding});
  waiter.place = std::prev(waiters_.end());
  ++waiting_;
  waiter.on_stop.emplace(std::move(stop), OnStop{this, &waiter});
}

// As Invocation::serve, but for what the calls that wait have passed already.
void CacheFlight::run(const Received& message) {
  // The function's sinks keep the table of calls, and with it the flight.
  const std::shared_ptr<CacheFlight> kept = shared_from_this();
  peer_.calls = {kept, &pending_};
  peer_.load = pending_.load.get();
  try {
    id_ = message.id();
    CallState state{peer_, nullptr};
    state.extras().hooks.push_back([this](const Outcome& outcome) { finished(outcome.code); });
    Invocation::serve_alone(cache_->method_.inner(), message, state);
  } catch (const std::bad_alloc&) {
    if (!finished_) finished(static_cast<int>(ErrorCode::internal_error));
  }
  peer_.load = nullptr;
  peer_.calls.reset();
  if (finished_ || pending_.owner == nullptr) return;
  counted_twice_ = true;
  --peer_.loop.stats.calls_in_flight;
}

Buffer& CacheFlight::open_message() {
  text_.clear();
  return text_;
}

// ---- callers that give up ----

void CacheFlight::stopped(Waiter& waiter) noexcept {
  const std::shared_ptr<CacheFlight> kept = shared_from_this();
  waiter.asked_to_stop = true;
  --waiting_;
  if (waiting_ != 0) {
    if (!waiter.sink.wanted()) waiters_.erase(waiter.place);
    return;
  }
  leave_table();
  // Callers may be asked to stop and wait all the same, when a server drains.
  if (std::ranges::any_of(waiters_, [](const Waiter& other) { return other.sink.wanted(); }))
    return pending_.stop_all(peer_.loop);
  last_ = std::move(waiter.sink);
  waiters_.clear();
  pending_.end_all(Cancelled{});
}

void CacheFlight::leave_table() noexcept {
  if (cache_ == nullptr) return;
  const auto found = cache_->joinable_.find(key_);
  if (found != cache_->joinable_.end() && found->second.get() == this) cache_->joinable_.erase(found);
}

void CacheFlight::abandon() noexcept {
  const std::shared_ptr<CacheFlight> kept = weak_from_this().lock();
  cache_ = nullptr;
  waiters_.clear();
  pending_.abandon(peer_.loop);
}

// ---- the answer ----

void CacheFlight::finished(int code) {
  const std::shared_ptr<CacheFlight> kept = shared_from_this();
  finished_ = true;
  if (counted_twice_) ++peer_.loop.stats.calls_in_flight;
  leave_table();
  std::optional<CachedValue> value;
  if (code == 0) value = result();
  if (!value) return fail_all(code);
  if (cache_ != nullptr && waiting_ != 0) {
    try {
      cache_->keep(*this, *value);
    } catch (const std::bad_alloc&) {
      // It is answered all the same.
    }
  }
  answer_all(std::move(*value));
}

// What stands between the head of a reply and its end; nullopt where there was no memory for it.
std::optional<CachedValue> CacheFlight::result() {
  Buffer head;
  Buffer end;
  if (form_.natively) {
    message::MessageWriter& writer = peer_.loop.codecs.message_writer(form_.sent);
    writer.begin_result(head);
    writer.end_reply(end, id_);
  } else {
    message::begin_result(head);
    message::end_reply(end, id_);
  }
  const std::string_view text = text_.view();
  if (text.starts_with(head.view()) && text.ends_with(end.view()) && text.size() >= head.size() + end.size()) {
    return CachedValue{form_.written(), compact_,
                       std::string{text.substr(head.size(), text.size() - head.size() - end.size())}};
  }
  Buffer json;
  Received received;
  if (!read_as_json(json, received) || !received.has(Member::result)) return std::nullopt;
  return CachedValue{Encoding::json, false, std::string{received[Member::result]}};
}

bool CacheFlight::read_as_json(Buffer& json, Received& received) {
  Limits unlimited = limits_;
  unlimited.max_message_size = std::max(text_.size(), unlimited.max_message_size);
  if (text_.view().empty()) return false;
  if (!form_.natively) {
    json.append(text_.view());
  } else if (peer_.loop.codecs.transcoder(form_.sent).to_json(text_.padded(), unlimited, json) !=
             message::Transcoder::Status::done) {
    return false;
  }
  unlimited.max_message_size = std::max(json.size(), unlimited.max_message_size);
  return read_message(json.padded(), unlimited, true, received).status == ScanStatus::complete;
}

std::optional<CacheFlight::Answered> CacheFlight::next_waiter() noexcept {
  if (waiters_.empty()) return std::nullopt;
  Waiter& first = waiters_.front();
  first.on_stop.reset();
  if (!first.asked_to_stop) --waiting_;
  std::optional<Answered> next{static_cast<Answered&&>(first)};
  waiters_.pop_front();
  return next;
}

void CacheFlight::answer_all(CachedValue first) {
  std::vector<CachedValue> values;
  values.push_back(std::move(first));
  while (std::optional<Answered> waiter = next_waiter()) {
    if (!waiter->sink.wanted()) continue;
    auto value = std::ranges::find(values, waiter->encoding, &CachedValue::encoding);
    if (value == values.end()) {
      std::optional<CachedValue> made = transcoded(peer_.loop.codecs, values.front(), waiter->encoding);
      if (!made) {
        waiter->sink.error(message::unrepresentable_result("it has no form in this encoding"));
        continue;
      }
      value = values.insert(values.end(), std::move(*made));
    }
    waiter->sink.encoded_result(value->bytes, {});
  }
}

// The function's call has been counted as one that is answered with an error: so the first of those that wait is not.
void CacheFlight::fail_all(int code) {
  Buffer json;
  Received received;
  Error error{ErrorCode::internal_error};
  const bool known = code != 0 && read_as_json(json, received) && received.has(Member::error);
  if (known) {
    Buffer text{received[Member::error]};
    error = message::read_error(*peer_.loop.codecs.readers.reader, text.padded());
  }
  bool counted = !known;
  while (std::optional<Answered> waiter = next_waiter()) {
    if (counted || !waiter->sink.wanted()) {
      waiter->sink.error(error);
      continue;
    }
    counted = true;
    if (cache_ != nullptr) cache_->count_error();
    waiter->sink.response(received.text, received.id(), code);
  }
}

}  // namespace wirecall::rpc
