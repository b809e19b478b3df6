// See datagram_service.hpp.
#include "connection/datagram_service.hpp"

#include "connection/long_message.hpp"
#include "framing/byte_order_mark.hpp"

namespace wirecall::net {

using transport::DatagramAddress;

// One datagram until its calls are over, and where its reply goes. It is used anew for the next one, unless a call has
// waited or has been counted: then the dispatcher knows its source.
class DatagramService::Transaction final : private rpc::MessageSink {
 public:
  explicit Transaction(DatagramService& service)
      : service_(&service),
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

 private:
  Buffer& open_message() override {
    WIRECALL_ASSERT(!replied_);  // a peer that is answered, and no more, is sent one message
    reply_.clear();
    return reply_;
  }
  void close_message() override;
  void discard_message() noexcept override { reply_.clear(); }
  [[nodiscard]] rpc::PeerCapabilities capabilities() const noexcept override { return {.datagrams = true}; }
  void lose_answer() noexcept override { ++service_->stats().datagrams_dropped; }
  [[nodiscard]] std::string_view protocol() const noexcept override { return "udp"; }
  [[nodiscard]] std::string peer_source() const override {
    return service_->socket_ != nullptr ? service_->socket_->peer_source(source_) : std::string{};
  }
  [[nodiscard]] std::shared_ptr<rpc::PeerLoad> load() override { return load_; }

  void read_encoded();
  void handle(std::string_view text, const std::vector<message::Unrepresentable>* unrepresentable);
  [[nodiscard]] bool send(std::string_view json);
  [[nodiscard]] bool send_too_large();

  DatagramService* service_;
  DatagramAddress source_;
  Buffer text_;  // of the datagram: a handler that loses the loop still reads it
  Buffer json_;  // what that is as JSON, where it is in another encoding
  Buffer reply_;
  std::size_t reply_bytes_max_ = 0;
  bool serving_ = false;
  Encoding encoding_ = Encoding::json;
  bool replied_ = false;
  std::shared_ptr<rpc::PeerLoad> load_ = std::make_shared<rpc::PeerLoad>();

 public:
  rpc::Dispatcher dispatcher;
};

// ---- one datagram ----

void DatagramService::Transaction::serve(std::string_view datagram, const DatagramAddress& source) {
  WIRECALL_ASSERT(is_done());
  source_ = source;
  replied_ = false;
  encoding_ = datagram.empty() ? Encoding::json : message::encoding_of(datagram[0]);
  reply_bytes_max_ = std::min({service_->limits_.datagram_reply_bytes,
                               service_->settings_.reply_factor_max * datagram.size(), service_->socket_->bytes_max()});
  serving_ = true;
  try {
    text_.clear();
    text_.append(datagram);
    encoding_ == Encoding::json ? handle(text_.padded(), nullptr) : read_encoded();
  } catch (const std::bad_alloc&) {
    lose_answer();
  }
  serving_ = false;
}

void DatagramService::Transaction::read_encoded() {
  using Status = message::Transcoder::Status;
  const Limits& limits = service_->limits_;
  message::Transcoder& transcoder = service_->host_->loop_context.codecs.transcoder(encoding_);
  json_.clear();
  const Status status = transcoder.to_json(text_.view(), limits, json_);
  if (status == Status::too_large) return dispatcher.refuse_size();
  if (status != Status::done)
    return dispatcher.refuse_syntax(scan_status_of(status), {.cause = transcoder.cause_of(status)});
  const std::vector<message::Unrepresentable> unrepresentable = transcoder.take_unrepresentable();
  handle(json_.padded(), &unrepresentable);
}

void DatagramService::Transaction::handle(std::string_view text,
                                          const std::vector<message::Unrepresentable>* unrepresentable) {
  rpc::LoopContext& context = service_->host_->loop_context;
  if (text_.size() > service_->limits_.max_message_size) return dispatcher.refuse_size();
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

// ---- its reply ----

void DatagramService::Transaction::close_message() {
  replied_ = true;
  ++service_->host_->loop_context.stats.messages_out;
  try {
    if (!send(reply_.padded()) && !send_too_large()) ++service_->stats().datagrams_too_large;
  } catch (const std::bad_alloc&) {
    lose_answer();
  }
}

// False for a reply that is too large.
bool DatagramService::Transaction::send(std::string_view json) {
  Buffer bytes;
  if (encoding_ != Encoding::json) {
    message::Transcoder& transcoder = service_->host_->loop_context.codecs.transcoder(encoding_);
    if (!transcoder.from_json(json, service_->limits_, bytes)) return true;
    json = bytes.view();
  }
  if (json.size() > reply_bytes_max_) return false;
  if (service_->socket_ != nullptr) service_->socket_->send(json, source_);
  return true;
}

bool DatagramService::Transaction::send_too_large() {
  constexpr ErrorCode kTooLarge = ErrorCode::too_large;
  Limits limits = service_->limits_;
  limits.depth = kDepthMax;
  Received reply;
  if (read_message(reply_.view(), limits, true, reply).status != ScanStatus::complete) return false;
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
  return send(errors.padded());
}

// ---- all of them ----

DatagramService::DatagramService(Host& host, std::unique_ptr<transport::DatagramSocket> socket, Settings settings)
    : host_(&host), socket_(std::move(socket)), settings_(settings), limits_(host.limits) {
  socket_->start(*this);
}

DatagramService::~DatagramService() = default;

void DatagramService::received(std::string_view datagram, const DatagramAddress& source) {
  ++stats().datagrams_in;
  stats().bytes_in += datagram.size();
  try {
    Transaction& transaction = begin_transaction();
    transaction.serve(datagram, source);
    calls_ += transaction.calls();
    if (transactions_.back().get() != &transaction || !transaction.is_done()) return;
    if (transaction.is_reusable()) spare_ = std::move(transactions_.back());
    transactions_.pop_back();
  } catch (const std::bad_alloc&) {
    ++stats().datagrams_dropped;
  }
}

// It is among the others from the beginning, since its handler may lose the loop.
DatagramService::Transaction& DatagramService::begin_transaction() {
  WIRECALL_ASSERT(socket_ != nullptr);
  if (std::exchange(swept_in_, host_->loop.rounds()) != host_->loop.rounds()) sweep();
  const std::size_t calls_max = limits_.datagram_calls;
  limits_.in_flight = std::min(host_->limits.in_flight, calls_max - std::min(calls_max, calls_));
  if (spare_ == nullptr) spare_ = make_transaction();
  transactions_.emplace_back();
  transactions_.back() = std::move(spare_);
  return *transactions_.back();
}

std::unique_ptr<DatagramService::Transaction> DatagramService::make_transaction() {
  auto made = std::make_unique<Transaction>(*this);
  if (draining_) made->dispatcher.drain();
  if (host_->loop_context.services.authority != nullptr) made->dispatcher.identify(&anybody(), {});
  return made;
}

// Methods are all there before the first datagram comes. Those that a broker's clients provide are not among these:
// whether they are safe, the clients alone say.
const Principal& DatagramService::anybody() {
  if (!anybody_.call.empty()) return anybody_;
  for (const auto& method : host_->registry.methods()) {
    if (method->is_safe()) anybody_.call.push_back(method->name());
  }
  return anybody_;
}

void DatagramService::authority_changed(bool was_open) {
  static_cast<void>(was_open);
  spare_.reset();
}

void DatagramService::sweep() noexcept {
  std::erase_if(transactions_, [](const auto& transaction) { return transaction->is_done(); });
  calls_ = 0;
  for (const auto& transaction : transactions_) calls_ += transaction->calls();
  limits_ = host_->limits;  // they change between turns
  limits_.max_message_size = std::min(limits_.max_message_size, socket_->bytes_max());
}

void DatagramService::drain() noexcept {
  draining_ = true;
  spare_.reset();
  for (const auto& transaction : transactions_) transaction->dispatcher.drain();
}

bool DatagramService::busy() const noexcept {
  return !std::ranges::all_of(transactions_, [](const auto& transaction) { return transaction->is_done(); });
}

void DatagramService::stop_calls() noexcept {
  for (const auto& transaction : transactions_) transaction->dispatcher.stop_calls();
}

void DatagramService::cut() {
  socket_.reset();
  std::erase_if(transactions_, [](const auto& transaction) { return !transaction->is_serving(); });
  host_->owner.connection_ended(*this, CloseReason::finished, 0);
}

bool DatagramService::handler_off_loop() const noexcept {
  return std::ranges::any_of(transactions_, [](const auto& transaction) { return transaction->is_serving(); });
}

}  // namespace wirecall::net
