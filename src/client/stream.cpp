// See stream.hpp. At the end ItemReader, by which users hold a stream.
#include "client/stream.hpp"

#include "message/call_text.hpp"
#include "wirecall/result_stream.hpp"

namespace wirecall {
namespace net {

using std::chrono::nanoseconds;

static const Codec& values_of(Encoding encoding) noexcept { return message::codec_of(encoding).values(); }

// The consumer is gone.
ClientStream::~ClientStream() {
  if (begun_) {
    Driver& driver = core_->driver();
    Lock lock = driver.lock();
    if (!ended_) {
      core_->calls().withdraw(*call_);
      if (call_->asynchronous) driver.asynchronous_over();
    } else if (call_->asynchronous && call_->state == CallState::ended) {
      core_->calls().drop_ended(*call_);
      driver.asynchronous_over();
    }
    call_->stream = nullptr;
    call_->enter(CallState::idle);
    driver.write_or_send(lock);
  }
  core_->give_back(*call_);
}

// ---- the consumer ----

ClientStream::Next ClientStream::wait() {
  begin(false);
  grant();
  if (take()) return Next::item;
  if (!wait_for_items()) return Next::end;
  return take() ? Next::item : Next::end;
}

ClientStream::Next ClientStream::poll(std::function<void()> wake) {
  begin(true);
  grant();
  if (take()) return Next::item;
  Driver& driver = core_->driver();
  Lock lock = driver.lock();
  if (hand_over() || ended_) {
    lock.unlock();
    return take() ? Next::item : Next::end;
  }
  if (!call_->asynchronous) [[unlikely]] {
    // The items before were waited for in the other way.
    driver.want_background();
    call_->asynchronous = true;
    driver.asynchronous(1);
    driver.asynchronous_begun(lock);
  }
  wake_.swap(wake);
  core_->calls().expire_at(begin_waiting(core_->shared().loop.now()));
  return Next::none;
}

void ClientStream::forget() noexcept {
  std::function<void()> forgotten;
  const Lock lock = core_->driver().lock();
  forgotten = take_wake();
}

void ClientStream::begin(bool asynchronous) {
  if (begun_) return;
  granted_ = credit_;
  Driver& driver = core_->driver();
  Lock lock = driver.lock();
  if (asynchronous) driver.want_background();
  call_->stream = this;
  call_->asynchronous = asynchronous;
  call_->waiting = &call_->own_waiting;
  ClientCall* const call = call_;
  core_->calls().submit({&call, 1});
  begun_ = true;
  // Only the time in which the consumer waits counts, unless all of it has a time.
  if (call_->own_timeout) whole_until_ = call_->deadline;
  call_->deadline = whole_until_;
  if (asynchronous) driver.asynchronous_begun(lock);
}

// The next item, when it has been handed over.
bool ClientStream::take() {
  if (at_ == taken_.ends.size()) return false;
  ++at_;
  ++consumed_;
  return true;
}

// With the mutex held: all that has come is the consumer's.
bool ClientStream::hand_over() {
  taken_.clear();
  std::swap(taken_, arrived_);
  at_ = 0;
  return !taken_.ends.empty();
}

// False at the end.
bool ClientStream::wait_for_items() {
  Driver& driver = core_->driver();
  if (driver.on_driver()) return refuse_to_block();
  Lock lock = driver.lock();
  while (!hand_over()) {
    if (ended_) return false;
    Waiting& waiting = call_->own_waiting;
    const nanoseconds now = core_->shared().loop.now();
    waiting.unfinished = 1;
    const bool goes_on = driver.wait(lock, waiting, now, begin_waiting(now));
    if (waiting.unfinished != 0) goes_on ? core_->calls().time_out(*call_) : core_->calls().stop(*call_);
    waiting.unfinished = 0;
    call_->deadline = whole_until_;
    driver.send_controls(lock);
  }
  return true;
}

// On the thread that drives there is only what has come already.
bool ClientStream::refuse_to_block() {
  const Lock lock = core_->driver().lock();
  if (hand_over()) return true;
  if (!ended_) {
    core_->calls().withdraw(*call_);
    core_->calls().fail(*call_,
                        Error{ErrorCode::internal_error,
                              "a blocking stream inside a callback, handler or coroutine of the same client would "
                              "wait for itself: await it"},
                        detail::ErrorClass::local_error);
  }
  return false;
}

// The consumer waits, and has nothing: from here on until an item comes, time counts.
nanoseconds ClientStream::begin_waiting(nanoseconds now) {
  const std::chrono::milliseconds timeout{core_->options().call_timeout_ms};
  return call_->deadline = std::min(whole_until_, now + timeout);
}

// Who asks for the next item is done with those before. Should it fail, none is lost, and it is made up for next time.
void ClientStream::grant() {
  if (consumed_ < std::max<std::uint32_t>(credit_ / 2, 1)) return;
  Driver& driver = core_->driver();
  Lock lock = driver.lock();
  if (call_->state != CallState::sent || !call_->connection->is_open()) {
    consumed_ = 0;
    return;
  }
  Buffer credit;
  message::append_credit(credit, call_->id_json(), consumed_);
  call_->connection->controls.emplace_back(credit.view());
  granted_ += std::exchange(consumed_, 0);
  driver.write_or_send(lock);
}

Reader& ClientStream::item() {
  const Items::End end = taken_.ends[at_ - 1];
  const Codec& codec = values_of(end.encoding);
  if (reader_ == nullptr || &reader_->codec() != &codec) reader_ = codec.reader();
  const std::size_t begin = at_ == 1 ? 0 : taken_.ends[at_ - 2].at;
  reader_->reset(taken_.bytes.padded().substr(begin, end.at - begin));
  return *reader_;
}

Reader& ClientStream::result() {
  reader_ = values_of(call_->response_encoding).reader();
  reader_->reset(call_->response.padded());
  return *reader_;
}

// ---- the connection ----

std::string_view ClientStream::fault_of(std::uint64_t seq) const noexcept {
  if (seq != next_seq_) return "items of the stream are missing";
  return granted_ == 0 ? "the stream has more items than it was given credit" : std::string_view{};
}

void ClientStream::add(std::string_view value, Encoding encoding) {
  WIRECALL_ASSERT(granted_ != 0 && !ended_);
  ++next_seq_;
  --granted_;
  arrived_.add(value, encoding);
}

// The items are what the function has returned: the member "return". False where there is none.
static bool find_return(Reader& reader) {
  if (reader.kind() != ValueKind::object || !reader.begin_object()) return false;
  for (std::string_view name; reader.next_member(name);) {
    if (name == "return") return true;
    static_cast<void>(reader.skip());
  }
  return false;
}

// A server that knows no streams answers with all results at once: they are items just the same. So is the result of a
// method that has one.
void ClientStream::call_ended() {
  ended_ = true;
  const std::string_view result = call_->response.view();
  if (call_->error || next_seq_ != 0 || result.empty()) return;
  const Encoding encoding = call_->response_encoding;
  const std::unique_ptr<Reader> reader = values_of(encoding).reader();
  Buffer padded{result};
  reader->reset(padded.padded());
  if (has_outputs_ && !find_return(*reader)) return;
  const ValueKind kind = reader->kind();
  if (kind == ValueKind::null) return;
  if (kind != ValueKind::array) return arrived_.add(reader->skip(), encoding);
  if (!reader->begin_array()) return;
  while (reader->next_element()) arrived_.add(reader->skip(), encoding);
}

}  // namespace net

// ---- what users hold ----

namespace detail {

static_assert(static_cast<int>(ItemReader::Next::none) == static_cast<int>(net::ClientStream::Next::none));

ItemReader::ItemReader(OutgoingCall call, std::uint32_t credit, std::unique_ptr<StreamOutputs> outputs)
    : call_(std::move(call)), outputs_(std::move(outputs)) {
  call_.set_credit(credit);
}
ItemReader::ItemReader(ItemReader&&) noexcept = default;
ItemReader::~ItemReader() = default;

net::ClientStream& ItemReader::begun() {
  if (stream_ == nullptr) {
    stream_ = call_.release();
    if (outputs_ != nullptr) stream_->expect_outputs();
  }
  return *stream_;
}

ItemReader::Next ItemReader::wait() { return static_cast<Next>(begun().wait()); }
ItemReader::Next ItemReader::poll(std::function<void()> wake) {
  return static_cast<Next>(begun().poll(std::move(wake)));
}
const Executor* ItemReader::driver() { return begun().driver(); }
void ItemReader::forget() noexcept { stream_->forget(); }
Reader& ItemReader::item() { return stream_->item(); }
void ItemReader::finish() {
  if (stream_->error() != nullptr) Answer{*stream_->error(), stream_->error_class()}.throw_error();
  if (outputs_ == nullptr) return;
  const std::unique_ptr<StreamOutputs> outputs = std::move(outputs_);
  Answer result{stream_->result()};
  outputs->take(result);
}

}  // namespace detail
}  // namespace wirecall
