// See client_stream.hpp, and ClientCore for what the connection does with items.
#include "client/stream.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "message/own_error.hpp"
#include "wirecall/result_stream.hpp"

namespace wirecall {
namespace session {

using std::chrono::nanoseconds;

namespace {

const Codec& codec_of(bool msgpack) noexcept { return msgpack ? msgpack_codec() : json_codec(); }

}  // namespace

ClientStream::~ClientStream() {
  if (begun_) core_->end_stream(*this);
  core_->give_back(*call_);
}

ClientStream::Next ClientStream::wait() {
  begin(false);
  grant();
  if (take()) return Next::item;
  if (!core_->wait_for_items(*this)) return Next::end;
  take();
  return Next::item;
}

ClientStream::Next ClientStream::poll(std::function<void()> wake) {
  begin(true);
  grant();
  if (take()) return Next::item;
  if (!core_->poll_items(*this, std::move(wake))) return Next::none;
  return take() ? Next::item : Next::end;
}

void ClientStream::forget() noexcept { core_->forget_items(*this); }

void ClientStream::begin(bool asynchronous) {
  if (begun_) return;
  granted_ = credit_;
  core_->start_stream(*this, asynchronous);
  begun_ = true;
}

// The next item, when it has been handed over.
bool ClientStream::take() {
  if (at_ == taken_.ends.size()) return false;
  ++at_;
  ++consumed_;
  return true;
}

// Who asks for the next item is done with those before. Should it fail, none is lost, and it is made up for next time.
void ClientStream::grant() {
  if (consumed_ >= std::max<std::uint32_t>(credit_ / 2, 1)) core_->grant(*this);
}

Reader& ClientStream::item() {
  const Items::End end = taken_.ends[at_ - 1];
  if (reader_ == nullptr || reader_->is_json() == end.msgpack) reader_ = codec_of(end.msgpack).reader();
  const std::size_t begin = at_ == 1 ? 0 : taken_.ends[at_ - 2].at;
  reader_->reset(taken_.bytes.padded().substr(begin, end.at - begin));
  return *reader_;
}

// A server that knows no streams answers with all results at once: they are items just the same. So is the result of a
// method that has one.
void ClientStream::gathered(std::string_view result, bool msgpack) {
  if (next_seq_ != 0 || result.empty()) return;
  const std::unique_ptr<Reader> reader = codec_of(msgpack).reader();
  Buffer padded{result};
  reader->reset(padded.padded());
  const ValueKind kind = reader->kind();
  if (kind == ValueKind::null) return;
  if (kind != ValueKind::array) return arrived_.add(result, msgpack);
  if (!reader->begin_array()) return;
  while (reader->next_element()) {
    arrived_.add(reader->skip(), msgpack);
  }
}

// ---- the core's part ----

void ClientCore::start_stream(ClientStream& stream, bool asynchronous) {
  ClientCall& call = *stream.call_;
  Lock lock{mutex_};
  if (asynchronous) want_driver();
  call.stream = &stream;
  call.asynchronous = asynchronous;
  call.waiting = &call.own_waiting;
  ClientCall* calls[] = {&call};
  submit(calls);
  // Only the time in which the consumer waits counts, unless all of it has a time.
  if (call.own_timeout) stream.whole_until_ = call.deadline;
  call.deadline = stream.whole_until_;
  if (asynchronous) asynchronous_begun(lock);
}

// The consumer waits, and has nothing: from here on until an item comes, time counts.
nanoseconds ClientCore::await_items(ClientStream& stream, nanoseconds now) const {
  ClientCall& call = *stream.call_;
  call.deadline = std::min(stream.whole_until_, now + std::chrono::milliseconds{options_.call_timeout_ms});
  return call.deadline;
}

bool ClientCore::hand_over(ClientStream& stream) {
  stream.taken_.clear();
  std::swap(stream.taken_, stream.arrived_);
  stream.at_ = 0;
  return !stream.taken_.ends.empty();
}

bool ClientCore::wait_for_items(ClientStream& stream) {
  if (on_driver()) {
    const Lock lock{mutex_};
    if (hand_over(stream)) return true;
    if (!stream.ended_) {
      withdraw(*stream.call_);
      fail(*stream.call_,
           Error{ErrorCode::internal_error,
                 "a blocking stream inside a callback, handler or coroutine of the same client would "
                 "wait for itself: await it"},
           detail::ErrorClass::local_error);
    }
    return false;
  }
  Lock lock{mutex_};
  for (;;) {
    if (hand_over(stream)) return true;
    if (stream.ended_) return false;
    Waiting& waiting = stream.call_->own_waiting;
    const nanoseconds now = loop_.now();
    waiting.unfinished = 1;
    const bool goes_on = wait(lock, waiting, now, await_items(stream, now));
    if (!goes_on && waiting.unfinished != 0) {
      stop(*stream.call_);
    } else if (waiting.unfinished != 0) {
      give_up(*stream.call_);
    }
    waiting.unfinished = 0;
    stream.call_->deadline = stream.whole_until_;
    send_controls(lock);
  }
}

bool ClientCore::poll_items(ClientStream& stream, std::function<void()> wake) {
  Lock lock{mutex_};
  if (hand_over(stream) || stream.ended_) return true;
  if (!stream.call_->asynchronous) [[unlikely]] {
    // The items before were waited for in the other way.
    want_driver();
    stream.call_->asynchronous = true;
    ++asynchronous_;
    asynchronous_begun(lock);
  }
  stream.wake_ = std::move(wake);
  const nanoseconds due = await_items(stream, loop_.now());
  if (due >= earliest_) return false;
  earliest_ = due;
  wake_driver();  // it may have gone to sleep for longer
  return false;
}

void ClientCore::forget_items(ClientStream& stream) noexcept {
  const std::scoped_lock lock{mutex_};
  stream.wake_ = nullptr;
}

void ClientCore::grant(ClientStream& stream) {
  Lock lock{mutex_};
  const ClientCall& call = *stream.call_;
  if (call.stage != ClientCall::Stage::written || !call.connection->up()) {
    stream.consumed_ = 0;
    return;
  }
  call.connection->controls.push_back(R"({"jsonrpc":"2.0","method":"rpc.credit","params":{"id":)" +
                                      std::to_string(call.id) + R"(,"n":)" + std::to_string(stream.consumed_) + "}}");
  stream.granted_ += std::exchange(stream.consumed_, 0);
  if (on_driver()) return write_queued();
  send_controls(lock);
}

// The call's end, in whichever way; `call.error` says whether it failed.
void ClientCore::finish_stream(ClientCall& call) {
  ClientStream& stream = *call.stream;
  if (!call.error) stream.gathered(call.response.view(), call.response_msgpack);
  stream.ended_ = true;
  if (call.asynchronous) {
    ended_.push_back(call);
  } else if (std::exchange(call.waiting->unfinished, 0) != 0) {
    call.waiting->ready.notify_one();
  }
}

// Its consumer goes on, where that waits.
void ClientCore::deliver_stream(Lock& lock, const ClientCall& call) {
  const std::function<void()> wake = std::exchange(call.stream->wake_, nullptr);
  const Unlocked unlocked{lock};
  if (wake) wake();
}

// The consumer is gone.
void ClientCore::end_stream(ClientStream& stream) noexcept {
  ClientCall& call = *stream.call_;
  Lock lock{mutex_};
  if (!stream.ended_) {
    withdraw(call);
    if (call.asynchronous) --asynchronous_;
  } else if (call.asynchronous && call.stage == ClientCall::Stage::ended) {
    ended_.remove(call);
    --asynchronous_;
  }
  call.stream = nullptr;
  call.stage = ClientCall::Stage::idle;
  if (on_driver()) return write_queued();
  send_controls(lock);
}

// An item of a stream, or nothing that concerns us. Called without the mutex.
bool ClientCore::item(ClientConnection& connection, const Received& message) {
  if (message.method() != "rpc.item") return false;
  if (!message.has(Member::params)) return true;
  std::uint64_t id = 0;
  std::uint64_t seq = 0;
  std::string_view value;
  std::string_view name;
  Reader& reader = message.msgpack ? *loop_context_.codecs.msgpack().readers.reader : *reader_;
  reader.reset(message[Member::params]);
  bool sound = reader.begin_object();
  bool named = false;
  while (sound && reader.next_member(name)) {
    if (name == "id") {
      named = sound = reader.read_uint(~std::uint64_t{0}, id);
    } else if (name == "seq") {
      sound = reader.read_uint(~std::uint64_t{0}, seq);
    } else if (name == "value") {
      value = reader.skip();
    } else {
      reader.skip();
    }
  }
  reader.clear_failure();
  Lock lock{mutex_};
  ClientCall* call = sound && named ? table_.find(id) : nullptr;
  if (call == nullptr || call->connection != &connection || call->stream == nullptr || value.empty()) {
    ++dropped_;
    return true;
  }
  ClientStream& stream = *call->stream;
  connection.useful = true;
  if (seq != stream.next_seq_ || stream.granted_ == 0) {
    // Items are missing, or come without end: what would be made of them is not what was sent.
    withdraw(*call);
    fail(*call, message::make({.code = ErrorCode::invalid_request,
                               .reason = seq != stream.next_seq_ ? "items of the stream are missing"
                                                                 : "the stream has more items than it was given credit",
                               .delivered = "maybe"}));
    return true;
  }
  ++stream.next_seq_;
  --stream.granted_;
  stream.arrived_.add(value, message.msgpack);
  if (!call->asynchronous) {
    if (std::exchange(call->waiting->unfinished, 0) != 0) call->waiting->ready.notify_one();
    return true;
  }
  call->deadline = stream.whole_until_;
  const std::function<void()> wake = std::exchange(stream.wake_, nullptr);
  lock.unlock();
  if (wake) wake();
  return true;
}

}  // namespace session

// ---- what users hold ----

namespace detail {

static_assert(static_cast<int>(ItemReader::Next::none) == static_cast<int>(session::ClientStream::Next::none));

ItemReader::ItemReader(OutgoingCall call, std::uint32_t credit) : call_(std::move(call)) { call_.set_credit(credit); }
ItemReader::ItemReader(ItemReader&&) noexcept = default;
ItemReader::~ItemReader() = default;

void ItemReader::set_timeout(std::chrono::milliseconds timeout) noexcept {
  if (stream_ == nullptr) call_.set_timeout(timeout);
}
void ItemReader::set_stop(std::stop_token stop) {
  if (stream_ == nullptr) call_.set_stop(std::move(stop));
}
void ItemReader::set_context(const Context& context) {
  if (stream_ == nullptr) call_.set_context(context);
}
void ItemReader::set_to(std::string_view provider) {
  if (stream_ == nullptr) call_.set_to(provider);
}

session::ClientStream& ItemReader::begun() {
  if (stream_ == nullptr) stream_ = call_.release();
  return *stream_;
}

ItemReader::Next ItemReader::wait() { return static_cast<Next>(begun().wait()); }
ItemReader::Next ItemReader::poll(std::function<void()> wake) {
  return static_cast<Next>(begun().poll(std::move(wake)));
}
const Executor* ItemReader::driver() { return begun().driver(); }
void ItemReader::forget() noexcept { stream_->forget(); }
Reader& ItemReader::item() { return stream_->item(); }
void ItemReader::throw_if_failed() const {
  if (stream_->error() != nullptr) Answer{*stream_->error(), stream_->error_class()}.throw_error();
}

}  // namespace detail
}  // namespace wirecall
