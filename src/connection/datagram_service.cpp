// See datagram_service.hpp.
#include "connection/datagram_service.hpp"

#include "base/reserve_extra.hpp"
#include "connection/long_message.hpp"
#include "framing/byte_order_mark.hpp"
#include "rpc/share.hpp"

namespace wirecall::net {

using transport::DatagramAddress;

// One datagram until its calls are over, and where its reply goes. It is used anew for the next one, unless a call has
// waited or has been counted: then the dispatcher knows its source.
class DatagramService::Transaction final : private rpc::MessageSink {
 public:
  Transaction(DatagramService& service, const DatagramAddress& source)
      : service_(&service),
        source_(source),
        dispatcher(service.host_->registry, *this, service.limits_, service.host_->loop_context, load_.get()) {}

  void serve(std::string_view datagram, const DatagramAddress& source);
  /// Its dispatcher is at work; a handler may have lost the loop.
  [[nodiscard]] bool is_serving() const noexcept { return serving_; }
  [[nodiscard]] bool is_done() const noexcept { return !serving_ && calls() == 0; }
  /// Nothing has been counted for its source.
  [[nodiscard]] bool is_reusable() const noexcept { return is_done() && load_->calls.account() == nullptr; }
  /// Whose handlers may still be at work.
  [[nodiscard]] std::size_t calls() const noexcept {
    return std::max<std::size_t>(load_->calls, dispatcher.in_flight());
  }
  /// Its calls count for its source until it goes, as of the last of these. Without memory they count for none.
  void count_for_source() noexcept;
  std::size_t count_anew() noexcept;

 private:
  Buffer& open_message() override {
    WIRECALL_ASSERT(!replied_);  // a peer that is answered, and no more, is sent one message
    reply_.clear();
    return reply_;
  }
  void close_message() override { close_compact_as({}); }
  void close_message_as(MessageForm form) override { close_compact_as(form); }
  void close_compact_as(MessageForm form) override;
  void discard_message() noexcept override { reply_.clear(); }
  [[nodiscard]] rpc::PeerCapabilities capabilities() const noexcept override { return {.datagrams = true}; }
  void lose_answer() noexcept override { ++service_->stats().datagrams_dropped; }
  [[nodiscard]] std::string_view protocol() const noexcept override { return "udp"; }
  [[nodiscard]] std::string peer_source() const override {
    return service_->socket_ != nullptr ? service_->socket_->peer_source(source_) : std::string{};
  }
  [[nodiscard]] std::shared_ptr<rpc::PeerLoad> load() override { return load_; }

  void read_encoded(std::string_view datagram);
  void handle(std::string_view text, const std::vector<message::Unrepresentable>* unrepresentable);
  [[nodiscard]] bool send(Buffer& json);
  [[nodiscard]] bool send_bytes(std::string_view bytes);
  [[nodiscard]] bool send_too_large();

  DatagramService* service_;
  DatagramAddress source_;
  Buffer json_;  // what the datagram is as JSON, where it is in another encoding
  Buffer reply_;
  std::size_t reply_bytes_max_ = 0;
  bool serving_ = false;
  Encoding encoding_ = Encoding::json;
  bool replied_ = false;
  std::shared_ptr<rpc::PeerLoad> load_ = std::make_shared<rpc::PeerLoad>();
  rpc::CallCount counted_;  // those of `calls` that count for its source

 public:
  rpc::Dispatcher dispatcher;
};

// ---- one datagram ----

void DatagramService::Transaction::serve(std::string_view datagram, const DatagramAddress& source) {
  WIRECALL_DEBUG_ASSERT(is_done());
  source_ = source;
  replied_ = false;
  encoding_ = datagram.empty() ? Encoding::json : message::encoding_of(datagram[0]);
  reply_bytes_max_ = std::min(service_->reply_bytes_max_, service_->settings_.reply_factor_max * datagram.size());
  serving_ = true;
  try {
    if (datagram.size() > service_->limits_.max_message_size) {
      dispatcher.refuse_size();
    } else {
      encoding_ == Encoding::json ? handle(datagram, nullptr) : read_encoded(datagram);
    }
  } catch (const std::bad_alloc&) {
    lose_answer();
  }
  serving_ = false;
}

void DatagramService::Transaction::read_encoded(std::string_view datagram) {
  using Status = message::Transcoder::Status;
  const Limits& limits = service_->limits_;
  message::Transcoder& transcoder = service_->host_->loop_context.codecs.transcoder(encoding_);
  json_.clear();
  const Status status = transcoder.to_json(datagram, limits, json_);
  if (status == Status::too_large) return dispatcher.refuse_size();
  if (status != Status::done)
    return dispatcher.refuse_syntax(scan_status_of(status), {.cause = transcoder.cause_of(status)});
  const std::vector<message::Unrepresentable> unrepresentable = transcoder.take_unrepresentable();
  handle(json_.padded(), &unrepresentable);
}

void DatagramService::Transaction::handle(std::string_view text,
                                          const std::vector<message::Unrepresentable>* unrepresentable) {
  rpc::LoopContext& context = service_->host_->loop_context;
  text.remove_prefix(framing::byte_order_mark_bytes(text));
  Received message;
  const std::span<Received> elements{*context.codecs.elements};
  const Scan scan = read_message(text, service_->limits_, true, message, elements);
  if (scan.status != ScanStatus::complete)
    return dispatcher.refuse_syntax(scan.status, message::unreadable_at(text, scan.offset));
  ++context.stats.messages_in;
  if (message.kind == MessageKind::response) {
    ++context.stats.responses_dropped;
  } else if (unrepresentable != nullptr) {
    dispatcher.handle_transcoded(message, elements, *unrepresentable);
  } else {
    dispatcher.handle(message, elements);
  }
}

void DatagramService::Transaction::count_for_source() noexcept {
  try {
    counted_.use(service_->sources_.of(peer_source(), service_->host_->loop_context.now()));
  } catch (const std::bad_alloc&) {
    return;
  }
  counted_ += calls();
}

// How many there are.
std::size_t DatagramService::Transaction::count_anew() noexcept {
  const std::size_t now = calls();
  if (now < counted_) counted_ -= counted_ - now;
  if (now > counted_) counted_ += now - counted_;
  return now;
}

// ---- its reply ----

// Whether it is errors for nobody alone, as what is no request is answered with.
static bool answers_no_request(Buffer& json) {
  constexpr std::string_view kForNobody = R"("id":null})";
  const std::string_view text = json.view();
  const auto is_for_nobody = [](const Received& reply) { return reply.has(Member::error) && reply.id() == "null"; };
  const bool batch = text.ends_with(']');
  if (!text.substr(0, text.size() - (batch ? 1 : 0)).ends_with(kForNobody)) return false;
  Limits limits;
  limits.depth = kDepthMax;
  Received reply;
  if (read_message(json.padded(), limits, true, reply).status != ScanStatus::complete) return false;
  if (!batch) return is_for_nobody(reply);
  BatchElements elements{reply.text};
  for (Received element; elements.next(element);) {
    if (!is_for_nobody(element)) return false;
  }
  return true;
}

void DatagramService::Transaction::close_compact_as(MessageForm form) {
  static_cast<void>(form);  // it is always JSON
  replied_ = true;
  ++service_->stats().messages_out;
  try {
    if (answers_no_request(reply_) && !service_->may_refuse()) return lose_answer();
    if (send(reply_) || send_too_large()) return;
    ++service_->stats().datagrams_too_large;
  } catch (const std::bad_alloc&) {
    lose_answer();
  }
}

// False for a reply that is too large.
bool DatagramService::Transaction::send(Buffer& json) {
  if (encoding_ == Encoding::json) [[likely]]
    return send_bytes(json.view());
  Buffer bytes;
  message::Transcoder& transcoder = service_->host_->loop_context.codecs.transcoder(encoding_);
  if (!transcoder.from_json(json.padded(), service_->limits_, bytes)) return true;
  return send_bytes(bytes.view());
}

bool DatagramService::Transaction::send_bytes(std::string_view bytes) {
  if (bytes.size() > reply_bytes_max_) return false;
  if (service_->socket_ != nullptr) service_->socket_->send(bytes, source_);
  return true;
}

bool DatagramService::Transaction::send_too_large() {
  constexpr ErrorCode kTooLarge = ErrorCode::too_large;
  Limits limits = service_->limits_;
  limits.depth = kDepthMax;
  Received reply;
  if (read_message(reply_.padded(), limits, true, reply).status != ScanStatus::complete) return false;
  Buffer errors;
  const auto append = [&](const Received& one) {
    write_error(errors, static_cast<int>(kTooLarge), message_of(kTooLarge), {}, one.id());
  };
  if (reply.kind != MessageKind::batch) {
    append(reply);
  } else {
    BatchElements elements{reply.text};
    for (Received element; elements.next(element);) {
      errors.push_back(errors.empty() ? '[' : ',');
      append(element);
    }
    errors.push_back(']');
  }
  return send(errors);
}

// ---- all of them ----

DatagramService::DatagramService(Host& host, std::unique_ptr<transport::DatagramSocket> socket, Settings settings)
    : host_(&host), socket_(std::move(socket)), settings_(settings), limits_(host.limits) {
  socket_->start(*this);
}

DatagramService::~DatagramService() = default;

void DatagramService::received(std::string_view datagram, const DatagramAddress& source) {
  Stats& counted = stats();
  ++counted.datagrams_in;
  counted.bytes_in += datagram.size();
  try {
    Transaction& transaction = begin_transaction(datagram, source);
    transaction.serve(datagram, source);
    // Its handler may have lost the loop: then others have gone on with the next transaction.
    if (current_.get() != &transaction || transaction.is_reusable()) [[likely]]
      return;
    retire_current();
  } catch (const std::bad_alloc&) {
    ++stats().datagrams_dropped;
  }
}

DatagramService::Transaction& DatagramService::begin_transaction(std::string_view datagram,
                                                                 const DatagramAddress& source) {
  WIRECALL_ASSERT(socket_ != nullptr);
  if (current_ != nullptr && current_->is_serving()) [[unlikely]]
    retire_current();
  const std::uint32_t round = host_->loop.rounds();
  if (std::exchange(round_, round) != round) [[unlikely]] {
    take_limits();
    if (round - swept_in_ >= kRoundsUnswept) sweep();
    look_for_room();
  }
  if (!has_room_) [[unlikely]]
    limit_calls(datagram, source);
  if (current_ == nullptr) [[unlikely]] {
    reserve_extra(waiting_, 1);
    current_ = make_transaction(source);
  }
  return *current_;
}

// Mostly so few calls are in progress that a source which has them all may have as many more as a datagram can ask for.
// Then it holds for the whole round, unless one of its datagrams has to wait.
void DatagramService::look_for_room() noexcept {
  const Limits& limits = host_->limits;
  has_room_ = calls_ + limits_.batch <= limits_.datagram_calls / 2 && stats().calls_in_flight < limits.principal_calls;
  if (!has_room_) return;
  limits_.in_flight = std::min(limits.in_flight, limits_.datagram_calls - calls_);
  limits_.principal_calls = limits.principal_calls;
}

void DatagramService::limit_calls(std::string_view datagram, const DatagramAddress& source) {
  const std::size_t wanted = std::min(limits_.batch, 1 + datagram.size() / kRequestBytesMin);
  limits_.in_flight = std::min(host_->limits.in_flight, calls_left(wanted, source));
  limits_.principal_calls = is_account_full(source) ? 0 : host_->limits.principal_calls;
}

// How many calls a datagram may begin that wants so many.
std::size_t DatagramService::calls_left(std::size_t wanted, const DatagramAddress& source) {
  if (calls_ + wanted <= limits_.datagram_calls / 2) return limits_.datagram_calls - calls_;
  const std::size_t left = share_left(source);
  if (left >= wanted || swept_in_ == *round_) return left;
  sweep();
  return share_left(source);
}

std::size_t DatagramService::share_left(const DatagramAddress& source) {
  const std::size_t own = sources_.of(socket_->peer_source(source), host_->loop_context.now())->calls;
  return rpc::share_left(limits_.datagram_calls, calls_, own);
}

// The first call of a peer is not asked how many its account has, and here each is a peer's first.
bool DatagramService::is_account_full(const DatagramAddress& source) {
  const std::size_t all = host_->limits.principal_calls;
  if (stats().calls_in_flight < all) return false;
  rpc::LoopContext& context = host_->loop_context;
  return context.budgets.accounts.of("source " + socket_->peer_source(source), context.now())->calls >= all;
}

// So often that it is no burden, and so rarely that whoever answers whatever comes to him, and is answered here, does
// not go on for ever.
bool DatagramService::may_refuse() noexcept {
  constexpr std::chrono::nanoseconds kSecond = std::chrono::seconds{1};
  const std::chrono::nanoseconds now = host_->loop_context.now();
  const std::chrono::nanoseconds next = std::max(refusal_due_, now) + kSecond / kRefusalsInSecond;
  if (next - now > kSecond) return false;
  refusal_due_ = next;
  return true;
}

// The next datagram is served by another one. Needs no memory: begin_transaction has reserved it.
void DatagramService::retire_current() noexcept {
  if (current_ == nullptr) return;
  if (current_->is_done()) return current_.reset();
  calls_ += current_->calls();
  current_->count_for_source();
  waiting_.push_back(std::move(current_));
  look_for_room();
}

std::unique_ptr<DatagramService::Transaction> DatagramService::make_transaction(const DatagramAddress& source) {
  auto made = std::make_unique<Transaction>(*this, source);
  if (draining_) made->dispatcher.drain();
  if (host_->loop_context.services.authority != nullptr) made->dispatcher.identify(&anybody(), {});
  return made;
}

// Methods are all there before the first datagram comes. Those that a broker's clients provide are not among these:
// whether they are safe, the clients alone say.
const Principal& DatagramService::anybody() {
  if (!anybody_.call.empty()) return anybody_;
  for (const auto& method : host_->registry.methods()) {
    // A "!" would make an exception of the name.
    if (method->is_safe() && !method->name().starts_with('!')) anybody_.call.push_back(method->name());
  }
  return anybody_;
}

void DatagramService::authority_changed(bool was_open) {
  static_cast<void>(was_open);
  retire_current();
}

void DatagramService::take_limits() noexcept {
  limits_ = host_->limits;  // they change between turns
  limits_.max_message_size = std::min(limits_.max_message_size, socket_->bytes_max());
  reply_bytes_max_ = std::min(limits_.datagram_reply_bytes, socket_->bytes_max());
}

// As many steps as calls are in progress: so not for each datagram, nor in each round.
void DatagramService::sweep() noexcept {
  swept_in_ = *round_;
  std::erase_if(waiting_, [](const auto& transaction) { return transaction->is_done(); });
  calls_ = 0;
  for (const auto& transaction : waiting_) calls_ += transaction->count_anew();
}

void DatagramService::drain() noexcept {
  draining_ = true;
  retire_current();
  for (const auto& transaction : waiting_) transaction->dispatcher.drain();
}

bool DatagramService::busy() const noexcept {
  return handler_off_loop() ||
         !std::ranges::all_of(waiting_, [](const auto& transaction) { return transaction->is_done(); });
}

void DatagramService::stop_calls() noexcept {
  retire_current();
  for (const auto& transaction : waiting_) transaction->dispatcher.stop_calls();
}

void DatagramService::cut() {
  socket_.reset();
  retire_current();
  std::erase_if(waiting_, [](const auto& transaction) { return !transaction->is_serving(); });
  host_->owner.connection_ended(*this, CloseReason::finished, 0);
}

bool DatagramService::handler_off_loop() const noexcept {
  return (current_ != nullptr && current_->is_serving()) ||
         std::ranges::any_of(waiting_, [](const auto& transaction) { return transaction->is_serving(); });
}

}  // namespace wirecall::net
