// See load.hpp. A LoadConnection is one connection with its calls in flight; Run paces all of them on one loop.
#include "cli/load/load.hpp"

#include <charconv>
#include <cstring>
#include <system_error>

#include "base/printable.hpp"
#include "cli/load/load_http.hpp"
#include "cli/load/load_websocket.hpp"
#include "cli/target.hpp"
#include "client/dialer.hpp"
#include "message/error_description.hpp"
#include "transport/socket.hpp"
#include "transport/udp.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/error.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/loop.hpp"
#include "wirecall/message.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr int kUnauthenticated = static_cast<int>(ErrorCode::unauthenticated);
constexpr milliseconds kConnectTimeout{10'000};
constexpr milliseconds kTurn{20};  // how long a turn may take without looking at the clock
constexpr nanoseconds kProgressEvery{1'000'000'000};
// A loop waits for whole milliseconds, rounded up, and a wait ends some time late. So close to when a call is due, the
// loop turns without waiting: what this process is late by would be counted as the server's.
constexpr nanoseconds kLateness{200'000};

// A datagram stands behind its length (transport/udp_stream.hpp).
constexpr std::size_t kLengthBytes = 4;

std::size_t length_at(std::string_view bytes) noexcept {
  std::size_t length = 0;
  for (std::size_t i = 0; i != kLengthBytes; ++i) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return length;
}

std::string length_text(std::size_t length) {
  std::string text;
  for (std::size_t i = 0; i != kLengthBytes; ++i) text += static_cast<char>(length >> (24 - 8 * i));
  return text;
}

/// Texts of equal size, one for each call that a connection may have in flight: they differ in their ids only, whose
/// numbers all have as many digits.
class Texts {
 public:
  Texts() = default;
  /// `make` makes each of them what is sent, all of one size.
  template <class Make>
  Texts(std::string_view before_id, std::string_view behind_id, std::uint64_t first_id, std::uint32_t count,
        const Make& make) {
    for (std::uint64_t id = first_id; id != first_id + count; ++id) {
      all_.append(make(std::string{before_id}.append(std::to_string(id)).append(behind_id)));
    }
    bytes_ = all_.size() / count;
  }
  [[nodiscard]] bool empty() const noexcept { return bytes_ == 0; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] const char* at(std::uint32_t slot) const noexcept { return all_.data() + slot * bytes_; }
  [[nodiscard]] std::string_view view(std::uint32_t slot) const noexcept { return {at(slot), bytes_}; }

 private:
  std::string all_;
  std::size_t bytes_ = 0;
};

std::string error_description_of(std::string_view json) {
  const auto error = Value::parse(json);
  const Value* const data = error ? error->find("data") : nullptr;
  return data != nullptr ? message::error_description({}, data->dump()) : std::string{json};
}

class LoadConnection;

class Run {
 public:
  explicit Run(const LoadOptions& options);

  LoadResult go();

  // For the connections.
  Loop loop;
  const LoadOptions& options;
  const std::uint64_t first_id;
  const Texts requests;
  Texts replies;  // what each is answered with, once a reply has been seen

  void learn(std::string_view reply, std::string_view id);
  void answered(nanoseconds due, nanoseconds now);
  void failed(int code, nanoseconds due, nanoseconds now);
  void strayed(const Received& message);
  void lost(std::string why) {
    if (result_.lost.empty()) result_.lost = std::move(why);
  }
  /// `why` is the server's own words.
  void refused(std::string_view why) {
    const bool shown = !options.token.empty();
    result_.refused = true;
    lost((shown ? "the server refuses the token: " : "unauthenticated: the server asks who calls: ") + printable(why) +
         kTokenCure);
  }
  [[nodiscard]] bool udp() const noexcept { return options.endpoint.kind() == EndpointKind::udp; }
  [[nodiscard]] bool http() const noexcept { return options.endpoint.by_http(); }
  [[nodiscard]] bool websocket() const noexcept { return options.endpoint.by_websocket(); }
  [[nodiscard]] bool open_loop() const noexcept { return options.rate > 0; }
  [[nodiscard]] bool sending() const noexcept { return sending_; }
  std::size_t free_slots = 0;  // of all connections

 private:
  [[nodiscard]] nanoseconds due_of(std::uint64_t call) const noexcept {
    return first_due_ + nanoseconds{static_cast<std::int64_t>(static_cast<double>(call) * 1e9 / options.rate)};
  }
  [[nodiscard]] bool measured(nanoseconds due, nanoseconds now) const noexcept {
    return open_loop() ? due >= begin_ && due < end_ : now >= begin_ && now < end_;
  }
  [[nodiscard]] bool over() const { return !result_.lost.empty() || (options.stop && options.stop()); }
  void send_due(nanoseconds now);
  void give_up_lost();
  void turn(nanoseconds until);

  std::vector<std::unique_ptr<LoadConnection>> connections_;
  std::size_t next_connection_ = 0;
  nanoseconds first_due_{};
  nanoseconds looked_at_{};  // when lost calls were looked for
  std::uint64_t calls_ = 0;  // open loop: that have been sent
  nanoseconds begin_ = nanoseconds::max();
  nanoseconds end_ = nanoseconds::max();
  bool sending_ = true;
  std::optional<Intervals> intervals_;  // from begin_ on, where they are wanted
  LoadResult result_;
};

class LoadConnection final : private transport::StreamUser {
 public:
  LoadConnection(Run& run, transport::PendingConnection connection) : run_(&run), stream_(connection.attach(run.loop)) {
    const std::uint32_t slots = run.options.pipeline;
    due_.resize(slots, kFree);
    free_.resize(slots);
    for (std::uint32_t slot = 0; slot < slots; ++slot) free_[slot] = slot;
    free_count_ = slots;
    run.free_slots += slots;
    if (!run.http() && !run.websocket() && !run.options.token.empty()) out_.append(hello(run.options.token));
    stream_->start(*this);
    if (!run.websocket()) return;
    handshake_ = make_websocket_request(run.options.endpoint, run.options.token);
    sending_ = true;
    stream_->send(Buffer{handshake_->text}, true);
  }
  LoadConnection(LoadConnection&&) = delete;

  [[nodiscard]] std::uint32_t free_count() const noexcept { return free_count_; }

  /// Begins a call; there is a free slot.
  void call(nanoseconds due) {
    const std::uint32_t slot = free_[free_at_];
    if (++free_at_ == free_.size()) free_at_ = 0;
    --free_count_;
    --run_->free_slots;
    due_[slot] = due;
    if (out_.capacity() == 0) out_ = run_->loop.take_buffer();
    out_.append(run_->requests.view(slot));
  }
  /// Calls that were due before then, and are still not answered, are lost: their slots are free, and how many these
  /// were is returned.
  std::uint64_t give_up(nanoseconds due) {
    std::uint64_t lost = 0;
    for (std::uint32_t slot = 0; slot != due_.size(); ++slot) {
      if (due_[slot] == kFree || due_[slot] >= due) continue;
      static_cast<void>(free(slot));
      ++lost;
    }
    return lost;
  }
  /// Hands what was begun to the system, as one send.
  void flush() {
    if (sending_ || handshake_ || out_.empty()) return;
    sending_ = true;
    stream_->send(std::exchange(out_, Buffer{}), false);
  }

 private:
  static constexpr nanoseconds kFree{-1};
  static constexpr std::string_view kHelloId = R"("rpc.hello")";

  static std::string hello(const std::string& token) {
    return R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"token":)" + to_json(token) + R"(},"id":)" +
           std::string{kHelloId} + "}\n";
  }
  void received(std::span<char> bytes) override;
  void ended() override { run_->lost("the server has closed a connection"); }
  void failed(int error) override { run_->lost(std::string{"a connection is lost: "} + std::strerror(error)); }
  void sent(Buffer buffer) override {
    sending_ = false;
    run_->loop.give_buffer(std::move(buffer));
    flush();
  }

  void read_known(std::string_view bytes, nanoseconds now);
  void read_unknown(std::string_view bytes, nanoseconds now);
  [[nodiscard]] std::string_view read_texts(std::string_view text, nanoseconds now);
  [[nodiscard]] std::string_view read_http(std::string_view text, nanoseconds now);
  [[nodiscard]] std::string_view read_websocket(std::string_view text, nanoseconds now);
  [[nodiscard]] std::string_view read_datagrams(std::string_view bytes, nanoseconds now);
  void read(const Received& message, std::string_view reply, nanoseconds now);
  // Of the call with exactly this id; what is no slot for any other id: 1.0 and "1" are not 1.
  [[nodiscard]] std::uint64_t slot_of(std::string_view id) const noexcept {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
    const bool whole = error == std::errc{} && end == id.data() + id.size();
    return whole ? number - run_->first_id : ~std::uint64_t{0};
  }
  nanoseconds free(std::uint32_t slot) {
    const std::size_t end = free_at_ + free_count_;
    free_[end < free_.size() ? end : end - free_.size()] = slot;
    ++free_count_;
    ++run_->free_slots;
    expected_ = slot + 1 == due_.size() ? 0 : slot + 1;
    return std::exchange(due_[slot], kFree);
  }

  Run* run_;
  std::unique_ptr<transport::ByteStream> stream_;
  std::vector<nanoseconds> due_;     // by slot: when its call was due; kFree when it has none
  std::vector<std::uint32_t> free_;  // a ring of slots, those free for longest first
  std::size_t free_at_ = 0;
  std::uint32_t free_count_ = 0;
  Buffer out_;
  bool sending_ = false;
  std::uint32_t expected_ = 0;                 // the slot that is answered next, if the server answers in order
  std::size_t matched_ = 0;                    // bytes of that answer that have come
  Buffer unread_;                              // what has come and is no answer that we know
  Buffer joined_;                              // a body that came in chunks
  std::optional<WebSocketRequest> handshake_;  // until it has been answered
};

// ---- replies ----

int error_code(std::string_view json) {
  const auto error = Value::parse(json);
  const Value* const code = error ? error->find("code") : nullptr;
  return code != nullptr && code->number_kind() == Value::NumberKind::integer ? static_cast<int>(code->as_int()) : 0;
}

void LoadConnection::received(std::span<char> bytes) {
  const nanoseconds now = run_->loop.now();
  read_known({bytes.data(), bytes.size()}, now);
  if (run_->open_loop() || !run_->sending()) return;
  while (free_count_ != 0) call(now);
  flush();
}

// The way of nearly all replies: they are what they were the last time.
void LoadConnection::read_known(std::string_view bytes, nanoseconds now) {
  const Texts& replies = run_->replies;
  while (!bytes.empty()) {
    if (replies.empty() || !unread_.empty() || due_[expected_] == kFree) return read_unknown(bytes, now);
    const std::size_t size = std::min(bytes.size(), replies.bytes() - matched_);
    if (std::memcmp(bytes.data(), replies.at(expected_) + matched_, size) != 0) {
      unread_.append({replies.at(expected_), std::exchange(matched_, 0)});
      return read_unknown(bytes, now);
    }
    bytes.remove_prefix(size);
    matched_ += size;
    if (matched_ == replies.bytes()) {
      matched_ = 0;
      run_->answered(free(expected_), now);
    }
  }
}

void LoadConnection::read_unknown(std::string_view bytes, nanoseconds now) {
  unread_.append(bytes);
  const std::string_view text = unread_.padded();
  const std::string_view rest = run_->http()        ? read_http(text, now)
                                : run_->websocket() ? read_websocket(text, now)
                                : run_->udp()       ? read_datagrams(text, now)
                                                    : read_texts(text, now);
  unread_.drop_front(text.size() - rest.size());
}

// What is left is the beginning of a reply.
std::string_view LoadConnection::read_texts(std::string_view text, nanoseconds now) {
  const auto skip_space = [&] { text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size())); };
  Received message;
  for (skip_space(); !text.empty(); skip_space()) {
    const Scan scan = read_message(text, kReplyLimits, false, message);
    if (scan.status == ScanStatus::incomplete) break;
    if (scan.status != ScanStatus::complete) {
      run_->lost("the server has sent what is not JSON: " + printable(text.substr(0, 80)));
      break;
    }
    const bool newline = scan.offset < text.size() && text[scan.offset] == '\n';
    text.remove_prefix(scan.offset);
    read(message, {message.text.data(), message.text.size() + (newline ? 1 : 0)}, now);
  }
  return text;
}

// They stand behind their lengths. One that is no message may be anybody's.
std::string_view LoadConnection::read_datagrams(std::string_view bytes, nanoseconds now) {
  while (bytes.size() >= kLengthBytes && bytes.size() >= kLengthBytes + length_at(bytes)) {
    Buffer datagram{bytes.substr(0, kLengthBytes + length_at(bytes))};
    Received message;
    const Scan scan = read_message(datagram.padded().substr(kLengthBytes), kReplyLimits, true, message);
    if (scan.status == ScanStatus::complete) read(message, datagram.view(), now);
    bytes.remove_prefix(datagram.size());
  }
  return bytes;
}

std::string_view LoadConnection::read_http(std::string_view text, nanoseconds now) {
  while (!text.empty()) {
    const HttpReply reply = read_http_reply(text, joined_);
    if (reply.unauthenticated) {
      run_->refused(reply.cause);
      break;
    }
    if (!reply.cause.empty()) {
      run_->lost("the server has sent " + printable(reply.cause));
      break;
    }
    if (reply.size == 0) break;
    if (!reply.body.empty()) {
      Received message;
      // The scanner wants to see as far as the end of all that has come.
      const std::string_view from = reply.in_place ? text.substr(reply.size - reply.body.size()) : reply.body;
      const Scan scan = read_message(from, kReplyLimits, false, message);
      if (scan.status != ScanStatus::complete || scan.offset > reply.body.size()) {
        run_->lost("the server has sent what is not JSON: " + printable(text.substr(0, 80)));
        break;
      }
      read(message, reply.in_place ? text.substr(0, reply.size) : std::string_view{}, now);
    }
    text.remove_prefix(reply.size);
  }
  return text;
}

std::string_view LoadConnection::read_websocket(std::string_view text, nanoseconds now) {
  while (!text.empty()) {
    const WebSocketReply reply = handshake_ ? read_websocket_answer(text, *handshake_) : read_websocket_reply(text);
    if (reply.unauthenticated) {
      run_->refused(reply.cause);
      break;
    }
    if (!reply.cause.empty()) {
      run_->lost(reply.cause);
      break;
    }
    if (reply.size == 0) break;
    if (handshake_) {
      handshake_.reset();
      flush();
    } else if (!reply.body.empty()) {
      Received message;
      // The scanner wants to see as far as the end of all that has come.
      const std::string_view from = text.substr(static_cast<std::size_t>(reply.body.data() - text.data()));
      const Scan scan = read_message(from, kReplyLimits, false, message);
      if (scan.status != ScanStatus::complete || scan.offset > reply.body.size()) {
        run_->lost("the server has sent what is not JSON: " + printable(reply.body.substr(0, 80)));
        break;
      }
      read(message, text.substr(0, reply.size), now);
    }
    text.remove_prefix(reply.size);
  }
  return text;
}

// `reply` is all that was sent for the message; empty where the next may be sent in another way.
void LoadConnection::read(const Received& message, std::string_view reply, nanoseconds now) {
  // Nobody serves what the server calls.
  if (message.kind == MessageKind::request || message.kind == MessageKind::notification) return;
  const std::string_view id = message.kind == MessageKind::response ? message.id() : std::string_view{};
  if (id == kHelloId && !run_->options.token.empty()) {
    if (message.has(Member::error)) run_->refused(error_description_of(message[Member::error]));
    return;
  }
  if (message.has(Member::error) && error_code(message[Member::error]) == kUnauthenticated)
    return run_->refused(error_description_of(message[Member::error]));
  const std::uint64_t slot = slot_of(id);
  if (slot >= due_.size() || due_[slot] == kFree) return run_->strayed(message);
  const nanoseconds due = free(static_cast<std::uint32_t>(slot));
  if (message.has(Member::error)) {
    run_->failed(error_code(message[Member::error]), due, now);
  } else {
    if (run_->replies.empty() && !reply.empty()) run_->learn(reply, id);
    run_->answered(due, now);
  }
}

// ---- the run ----

// So many ids have as many digits as the first of them.
std::uint64_t first_id_for(std::uint32_t slots) {
  std::uint64_t first = 1;
  while (first * 9 < slots) first *= 10;
  return first;
}

Texts make_requests(const LoadOptions& options, std::uint64_t first_id) {
  std::string before = R"({"jsonrpc":"2.0","method":)" + to_json(options.method);
  if (!options.params.empty()) before += R"(,"params":)" + options.params;
  before += R"(,"id":)";
  const auto as_it_is = [](std::string text) { return text; };
  const EndpointKind kind = options.endpoint.kind();
  if (options.endpoint.by_websocket()) return {before, "}", first_id, options.pipeline, websocket_frame};
  const std::size_t bytes = before.size() + std::to_string(first_id).size() + 1;
  if (kind == EndpointKind::udp) {
    if (!options.token.empty()) throw std::runtime_error{"a token is not sent by UDP: give none, or another server"};
    if (bytes > transport::kUdpBytesMax)
      throw std::runtime_error{"such a call has " + std::to_string(bytes) + " bytes, and a datagram at most " +
                               std::to_string(transport::kUdpBytesMax)};
    return {length_text(bytes) + before, "}", first_id, options.pipeline, as_it_is};
  }
  if (!options.endpoint.by_http()) return {before, "}\n", first_id, options.pipeline, as_it_is};
  const std::string head = http_request_head(options.endpoint, options.token, bytes);
  return {head + before, "}", first_id, options.pipeline, as_it_is};
}

Run::Run(const LoadOptions& given)
    : options(given), first_id(first_id_for(given.pipeline)), requests(make_requests(given, first_id)) {
  connections_.reserve(options.connections);
  ClientOptions client;
  client.cafile = options.cafile;
  client.proxy = options.proxy;
  client.tls = options.tls;
  warn_of_no_verify(client);
  const net::DialFunction dial = net::dial_function({&options.endpoint, 1}, client);
  for (std::uint32_t i = 0; i < options.connections; ++i) {
    connections_.push_back(std::make_unique<LoadConnection>(*this, dial(options.endpoint, kConnectTimeout)));
  }
}

void Run::learn(std::string_view reply, std::string_view id) {
  const auto at = static_cast<std::size_t>(id.data() - reply.data());
  replies = Texts{reply.substr(0, at), reply.substr(at + id.size()), first_id, options.pipeline,
                  [](std::string text) { return text; }};
}

void Run::answered(nanoseconds due, nanoseconds now) {
  const nanoseconds took = now - due;
  if (measured(due, now)) result_.latency.record(static_cast<std::uint64_t>(took.count()));
  if (now < begin_ || now >= end_) return;
  ++result_.answered;
  if (!intervals_) return;
  LoadInterval& interval = intervals_->at(now);
  ++interval.answered;
  ++interval.timed;
  interval.sum += took;
  interval.min = std::min(interval.min, took);
  interval.max = std::max(interval.max, took);
}

void Run::failed(int code, nanoseconds due, nanoseconds now) {
  const bool counts = now >= begin_ && now < end_;
  result_.answered += counts;
  if (counts && intervals_) {
    ++intervals_->at(now).answered;
    ++intervals_->at(now).failed;
  }
  if (!measured(due, now)) return;
  ++result_.errors;
  ++result_.errors_by_code[code];
}

void Run::strayed(const Received& message) {
  ++result_.strays;
  ++result_.errors;
  if (message.kind == MessageKind::response && message.has(Member::error)) {
    ++result_.errors_by_code[error_code(message[Member::error])];
  }
}

// Begins all calls that are due by now, as far as the connections have room.
void Run::send_due(nanoseconds now) {
  while (free_slots != 0 && due_of(calls_) <= now) {
    while (connections_[next_connection_]->free_count() == 0)
      next_connection_ = (next_connection_ + 1) % connections_.size();
    connections_[next_connection_]->call(due_of(calls_++));
    next_connection_ = (next_connection_ + 1) % connections_.size();
  }
  for (const auto& connection : connections_) connection->flush();
}

// By UDP nothing else says that a call is lost: one that is answered later than that counts as none.
void Run::give_up_lost() {
  const nanoseconds now = loop.now();
  if (now - looked_at_ < kTurn) return;
  looked_at_ = now;
  for (const auto& connection : connections_) {
    const std::uint64_t lost = connection->give_up(now - options.patience);
    result_.unanswered += lost;
    if (intervals_ && now < end_) intervals_->at(now).failed += lost;
    if (open_loop() || !sending_) continue;
    while (connection->free_count() != 0) connection->call(now);
    connection->flush();
  }
}

void Run::turn(nanoseconds until) {
  nanoseconds wait = std::min<nanoseconds>(until - loop.now(), kTurn);
  if (open_loop() && sending_) {
    send_due(loop.now());
    // Without a free slot only a reply brings the next call.
    if (free_slots != 0) {
      wait = std::chrono::floor<milliseconds>(std::min(wait, due_of(calls_) - loop.now() - kLateness));
    }
  }
  loop.turn(std::max(wait, nanoseconds{0}));
  if (udp()) give_up_lost();
}

LoadResult Run::go() {
  if (options.connected) options.connected();
  const nanoseconds start = first_due_ = loop.now();
  if (!open_loop()) {
    for (const auto& connection : connections_) {
      while (connection->free_count() != 0) connection->call(start);
      connection->flush();
    }
  }
  nanoseconds now = start;
  const nanoseconds warm = start + options.warm_up;
  for (; now < warm && !over(); now = loop.now()) turn(warm);

  begin_ = now;
  end_ = now + options.duration;
  if (options.interval_length > nanoseconds{0}) intervals_.emplace(begin_, options.interval_length, options.interval);
  nanoseconds told = begin_;
  for (; now < end_ && !over(); now = loop.now()) {
    if (intervals_) static_cast<void>(intervals_->at(now));
    turn(intervals_ ? std::min(end_, intervals_->next()) : end_);
    if (options.progress && now - told >= kProgressEvery) {
      told = now;
      result_.elapsed = now - begin_;
      options.progress(result_);
    }
  }
  // The last turn may have come back late: what came after the end was not counted, and that time is not either.
  end_ = std::min(end_, now);
  result_.elapsed = end_ - begin_;
  if (intervals_) intervals_->end(end_);

  sending_ = false;
  const auto in_flight = [&] { return connections_.size() * options.pipeline - free_slots; };
  const nanoseconds last = now + options.patience;
  for (; now < last && in_flight() != 0 && result_.lost.empty(); now = loop.now()) turn(last);
  if (result_.refused) {  // with its connection, the calls in flight
    result_.errors += in_flight();
    result_.errors_by_code[kUnauthenticated] += in_flight();
  } else {
    result_.unanswered += in_flight();
  }
  if (open_loop()) {
    for (; due_of(calls_) < end_; ++calls_) result_.unsent += due_of(calls_) >= begin_;
  }
  connections_.clear();
  return std::move(result_);
}

}  // namespace

LoadResult run_load(const LoadOptions& options) { return Run{options}.go(); }

}  // namespace wirecall::cli
