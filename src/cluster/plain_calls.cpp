// See plain_calls.hpp.
#include "cluster/plain_calls.hpp"

#include "cluster/named_credentials.hpp"
#include "message/explain.hpp"
#include "message/own_error.hpp"
#include "rpc/access.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cluster {

using std::chrono::nanoseconds;

namespace {

constexpr std::string_view kAnonymous = "anonymous";
constexpr std::size_t kBytesKept = 64 * 1024;
constexpr std::size_t kErrorBytesMax = 200;

const NamedCredentials kNamed{"the principal of plain NATS clients is not known any more"};

// Whether a message, or each of a batch, calls `method`, by whose subject it came.
bool calls(const Received& message, std::string_view method) {
  if (message.kind == MessageKind::batch) {
    BatchElements elements{message.text};
    for (Received element; elements.next(element);) {
      if (!calls(element, method)) return false;
    }
    return true;
  }
  if (message.kind != MessageKind::request && message.kind != MessageKind::notification) return true;
  if (!message.method_escaped) return message.method() == method;
  const auto name = Value::parse(message[Member::method]);
  return name && name->is_string() && name->as_string() == method;
}

// Whether an answer is due.
bool asks(const Received& message) {
  if (message.kind != MessageKind::batch)
    return message.kind == MessageKind::request || message.kind == MessageKind::invalid;
  BatchElements elements{message.text};
  for (Received element; elements.next(element);) {
    if (asks(element)) return true;
  }
  return false;
}

}  // namespace

// ---- one message, and its answer ----

class PlainCalls::Request final : public rpc::MessageSink {
 public:
  explicit Request(PlainCalls& own)
      : own_(&own),
        dispatcher_(own.context_->host.registry, *this, own.context_->host.limits, own.context_->host.loop_context,
                    own.load_.get()) {}
  Request(Request&&) = delete;

  /// Serves it. Whether it has been answered by now, or will not be.
  bool serve(const BusMessage& message, std::string method);

  Buffer& open_message() override { return answer_; }
  void close_message() override {
    if (std::exchange(answered_, true)) return answer_.clear();  // nobody waits for a second one
    try {
      own_->answered(*this);
    } catch (const std::bad_alloc&) {
      // As if the bus had not taken it.
    }
    if (!serving_) own_->finish(*this);
  }
  void discard_message() noexcept override { answer_.clear(); }
  void lose_answer() noexcept override {
    answered_ = true;
    if (!serving_) own_->finish(*this);
  }
  [[nodiscard]] bool is_overfull() noexcept override {
    return own_->context_->bus.waiting_bytes() > own_->context_->host.limits.soft_output;
  }
  [[nodiscard]] std::string peer_source() const override { return "nats"; }
  [[nodiscard]] std::string_view protocol() const noexcept override { return "nats"; }
  [[nodiscard]] std::shared_ptr<rpc::PeerLoad> load() override { return own_->load_; }

  [[nodiscard]] const std::string& method() const noexcept { return method_; }
  [[nodiscard]] const std::string& reply() const noexcept { return reply_; }
  [[nodiscard]] nanoseconds began() const noexcept { return began_; }
  [[nodiscard]] Buffer& answer() noexcept { return answer_; }
  [[nodiscard]] bool is_serving() const noexcept { return serving_; }
  [[nodiscard]] bool is_still_known() const noexcept { return dispatcher_.is_still_known(); }
  void end(const Error& error) noexcept { dispatcher_.end_calls(error); }
  void clear() noexcept;

 private:
  void refuse(const Error& error, const Received& message);
  void dispatch(std::string_view text);

  PlainCalls* own_;
  std::string method_;
  std::string reply_;
  Buffer text_;
  Buffer answer_;
  nanoseconds began_{0};
  bool serving_ = false;
  bool answered_ = false;
  rpc::Dispatcher dispatcher_;
};

bool PlainCalls::Request::serve(const BusMessage& message, std::string method) {
  method_ = std::move(method);
  reply_ = message.reply;
  answered_ = false;
  began_ = own_->context_->now();
  text_.clear();
  text_.append(message.payload);
  serving_ = true;
  struct Served {
    bool* serving;
    ~Served() { *serving = false; }
  } const served{&serving_};
  dispatch(text_.padded());
  return answered_;
}

void PlainCalls::Request::dispatch(std::string_view text) {
  const NodeContext& context = *own_->context_;
  const Limits& limits = context.host.limits;
  if (text.size() > limits.max_message_size) return dispatcher_.refuse_size();
  Received message;
  const Scan scan = read_message(text, limits, true, message);
  if (scan.status != ScanStatus::complete)
    return dispatcher_.refuse_syntax(scan.status, message::unreadable_at(text, scan.offset));
  if (message.kind == MessageKind::response) {
    answered_ = true;
    return;
  }
  const std::optional<const Principal*> principal = own_->principal();
  if (!principal) {
    refuse(message::make(ErrorCode::unauthenticated, own_->refusal_reason(), "no"), message);
  } else if (!calls(message, method_)) {
    refuse(Error::with_data(ErrorCode::invalid_request, R"({"reason":"the subject names another method"})"), message);
  } else {
    if (*principal != nullptr && dispatcher_.is_unidentified())
      dispatcher_.identify(*principal, {kNamed, (*principal)->name});
    dispatcher_.handle(message);
  }
  if (answered_ || asks(message)) return;
  // A notification: who has asked for a reply all the same learns that it has come.
  answered_ = true;
  if (!reply_.empty()) static_cast<void>(context.bus.publish(reply_, {}, {}));
}

void PlainCalls::Request::refuse(const Error& error, const Received& message) {
  if (!asks(message)) return;
  rpc::OutgoingMessage refused{*this};
  write_error(refused.text(), error, message.kind == MessageKind::batch ? "null" : message.id());
  refused.close();
}

void PlainCalls::Request::clear() noexcept {
  reply_.clear();
  if (text_.capacity() > kBytesKept) text_.release();
  if (answer_.capacity() > kBytesKept) answer_.release();
  answer_.clear();
}

// ---- all of them ----

PlainCalls::PlainCalls(NodeContext& context, std::string principal)
    : context_(&context), principal_(std::move(principal)) {}

PlainCalls::~PlainCalls() = default;

void PlainCalls::take_part(bool takes) {
  if (takes == takes_part_) return;
  const std::string subject = context_->subjects.methods() + '>';
  if (takes) {
    context_->bus.subscribe_in_group(subject, std::string{kGroup},
                                     [this](const BusMessage& message) { take(message); });
  } else {
    context_->bus.unsubscribe(subject);
  }
  takes_part_ = takes;
}

std::optional<const Principal*> PlainCalls::principal() const noexcept {
  if (principal_.empty()) return std::nullopt;
  const rpc::Authority* const authority = context_->host.loop_context.services.authority.get();
  if (authority == nullptr) return principal_ == kAnonymous ? std::optional{nullptr} : std::nullopt;
  const Principal* const known = authority->find_named(principal_);
  return known != nullptr ? std::optional{known} : std::nullopt;
}

std::string PlainCalls::refusal_reason() const {
  return "cluster.plain_principal is " + principal_ + ", of which this broker does not know";
}

bool PlainCalls::has_room(const NodeContext& context) noexcept {
  const std::size_t most = context.host.limits.soft_output;
  if (context.bus.waiting_bytes() > most) context.bus.flush();
  return context.bus.waiting_bytes() <= most;
}

void PlainCalls::take(const BusMessage& message) {
  if (!may_be_answered(message.reply) || !has_room(*context_)) return;
  const Reading reading{context_->reading};
  const std::string_view words = message.subject.substr(context_->subjects.methods().size());
  std::optional<std::string> method = name_of_subject(words);
  if (!method) return;
  end_calls_of_former();
  authority_ = context_->host.loop_context.services.authority;
  while (idle_.size() > kIdleMax) idle_.pop_back();
  idle_.reserve(idle_.size() + requests_.size() + 1);
  std::unique_ptr<Request> owned = take_idle();
  Request& request = *owned;
  requests_.emplace(&request, std::move(owned));
  bool over = true;
  try {
    over = request.serve(message, std::move(*method));
  } catch (const std::bad_alloc&) {
    // As if it had not come.
  }
  if (over) finish(request);
}

std::unique_ptr<PlainCalls::Request> PlainCalls::take_idle() {
  while (!idle_.empty()) {
    std::unique_ptr<Request> request = std::move(idle_.back());
    idle_.pop_back();
    if (request->is_still_known()) return request;
  }
  return std::make_unique<Request>(*this);
}

void PlainCalls::finish(Request& request) noexcept {
  const auto found = requests_.find(&request);
  if (found == requests_.end() || request.is_serving()) return;
  std::unique_ptr<Request> owned = std::move(found->second);
  requests_.erase(found);
  owned->clear();
  idle_.push_back(std::move(owned));  // room is there; it may be on the way through itself, so it goes later
}

// Sends what the request has been answered.
void PlainCalls::answered(Request& request) {
  Buffer& answer = request.answer();
  Received read;
  const bool whole = read_message(answer.padded(), context_->host.limits, true, read).status == ScanStatus::complete;
  const bool failed = whole && read.kind == MessageKind::response && read.has(Member::error);
  count(request, failed, failed ? read[Member::error] : std::string_view{});
  if (request.reply().empty()) return;
  Bus& bus = context_->bus;
  if (answer.size() > bus.payload_bytes_max()) {
    const Error error = message::make({.code = ErrorCode::too_large,
                                       .reason = "the answer is longer than NATS takes at once",
                                       .delivered = "maybe",
                                       .limit = "max_payload"});
    Buffer text;
    write_error(text, error, whole && read.kind == MessageKind::response ? read.id() : "null");
    answer = std::move(text);
  }
  static_cast<void>(bus.publish(request.reply(), {}, answer.view()));  // who cannot be answered now is not
  context_->flush();
}

void PlainCalls::count(const Request& request, bool failed, std::string_view answer_error) {
  // By the name under which it is registered: of a prefix any number of names may be called.
  const broker::Route* const route = context_->router.methods().find(request.method());
  const bool own = context_->host.registry.find(request.method()) != nullptr;
  if (route == nullptr && !own) return;
  const std::string& name = own ? request.method() : route->name();
  auto found = counts_.find(name);
  if (found == counts_.end()) {
    if (counts_.size() == kCountsMax) counts_.clear();
    found = counts_.emplace(name, Counts{}).first;
  }
  Counts& counts = found->second;
  ++counts.requests;
  counts.time += context_->now() - request.began();
  if (!failed) return;
  ++counts.errors;
  const auto error = Value::parse(answer_error);
  const Value* const code = error && error->is_object() ? error->find("code") : nullptr;
  const Value* const text = code != nullptr ? error->find("message") : nullptr;
  if (text == nullptr || !text->is_string()) return;
  counts.last_error = code->dump() + ':' + text->as_string();
  if (counts.last_error.size() > kErrorBytesMax) counts.last_error = code->dump();
}

void PlainCalls::drain() noexcept {
  drained_ = true;
  broker::if_memory_allows([this] { take_part(false); });  // else with the next tick
}

void PlainCalls::abandon() noexcept {
  // Those that are being served are answered to nobody.
  std::erase_if(requests_, [](const auto& one) { return !one.second->is_serving(); });
}

void PlainCalls::tick(bool may_take) noexcept {
  // Without memory, in a later tick.
  broker::if_memory_allows([&] {
    const bool known = principal().has_value();
    take_part(may_take && known && !drained_);
    told_of_refusal_ = told_of_refusal_ && !known;
    if (known || principal_.empty() || std::exchange(told_of_refusal_, true)) return;
    context_->log(LogLevel::warning, "cluster: calls of plain NATS clients, at " + context_->subjects.methods() +
                                         ">, are left to other brokers: " + refusal_reason());
  });
  end_calls_of_former();
}

void PlainCalls::end_calls_of_former() noexcept {
  if (requests_.empty() || authority_ == context_->host.loop_context.services.authority) return;
  try {
    const Error error = principal_changed();
    std::vector<Request*> ended;
    for (const auto& [request, owned] : requests_) {
      if (!owned->is_serving() && !owned->is_still_known()) ended.push_back(owned.get());
    }
    for (Request* const request : ended) request->end(error);
    authority_ = context_->host.loop_context.services.authority;
  } catch (const std::bad_alloc&) {
    // In a later tick.
  }
}

}  // namespace wirecall::cluster
