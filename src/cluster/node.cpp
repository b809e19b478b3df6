// See node.hpp: the session with a node, and the messages of calls.
#include "cluster/node.hpp"

#include <cstring>

#include "broker/methods.hpp"
#include "broker/stream_request.hpp"
#include "cluster/named_credentials.hpp"
#include "message/cancel_request.hpp"
#include "message/own_error.hpp"
#include "rpc/access.hpp"
#include "rpc/admission.hpp"
#include "rpc/reserved.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::cluster {

using std::chrono::nanoseconds;

namespace {

// Beyond so many principals those go that nobody of is calling.
constexpr std::size_t kSidesMax = 256;
constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max() / 4;
// What a message may be larger than its limit, for what brokers add.
constexpr std::size_t kEnvelopeBytes = 64 * 1024;
// A last session is pinged once in so many ticks where no calls are pending, since no heartbeats are heard of it.
constexpr int kQuietTicks = 4;
// A longer record ends the session: a message that is shorter, and longer than a message may be here, is refused.
constexpr std::size_t kRecordBytes = std::size_t{64} << 20;

// A node that its peers believe: what it may do for its callers they may do, whom it names.
class NodeCredentials final : public rpc::CredentialKind {
 public:
  [[nodiscard]] std::string_view revoked() const noexcept override { return "the node is not known any more"; }
  [[nodiscard]] const Principal* find(const rpc::Authority&, std::string_view) const noexcept override {
    static const Principal node{.name = "node",
                                .tokens = {},
                                .call = {">"},
                                .provide = {">"},
                                .publish = {">"},
                                .subscribe = {">"},
                                .admin = false};
    return &node;
  }
};

const NodeCredentials kNodes;
const NamedCredentials kVouched{"the principal for whom a node has vouched is not known any more"};

// Told from those of all other links, also of a broker that has had this name before.
std::uint64_t first_session(std::uint64_t epoch, std::uint64_t number) noexcept {
  std::uint64_t mixed = epoch + number * 0x9E3779B97F4A7C15;
  mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9;
  mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB;
  return (mixed ^ mixed >> 31) | 1;
}

NodeLink::Bounds bounds_of(const Limits& limits) {
  return {.body_bytes_max = std::max(limits.max_message_size + kEnvelopeBytes, kRecordBytes),
          .waiting_bytes_max = limits.hard_output};
}

Error too_much(bool is_too_long, std::string_view delivered) {
  return message::make({.code = ErrorCode::too_large,
                        .reason = is_too_long ? "the message is longer than the other broker takes"
                                              : "the message nests deeper than the other broker takes",
                        .delivered = delivered,
                        .limit = is_too_long ? "max_message_size" : "depth"});
}

// Whether a call is one that its caller's own broker serves: it holds for a connection, or is said in its own name.
bool is_for_own_broker(std::string_view name) {
  if (name == "rpc.hello") return true;
  const rpc::ReservedMethod* const reserved = broker::find_broker_method(name);
  return reserved != nullptr && reserved->needs != rpc::ReservedMethod::Needs::nothing;
}

Limits limits_of_node(Limits limits) {
  limits.rate = limits.principal_rate = 0;
  limits.in_flight = limits.principal_calls = kNoLimit;
  return limits;
}

}  // namespace

Node::Node(NodeContext& context, std::string name)
    : context_(&context),
      name_(std::move(name)),
      limits_(limits_of_node(context.host.limits)),
      link_(context.bus, {.own = context.own, .subject = context.subjects.call(name_)},
            first_session(context.epoch, ++context.sessions), bounds_of(context.host.limits), *this),
      heard_at_(context.now()) {}

Node::~Node() {
  mark_untaken(link_.reached());
  end_session(losing_);
  context_->absent -= counts_as_absent_ ? 1 : 0;
}

void Node::become(State state) noexcept {
  state_ = state;
  count_absent();
}

void Node::count_absent() noexcept {
  const bool before = std::exchange(
      counts_as_absent_, state_ == State::unreachable || (state_ == State::joining && !former_methods_.empty()));
  context_->absent += (counts_as_absent_ ? 1 : 0) - (before ? 1 : 0);
}

// ---- messages that go there ----

Buffer& Node::Sink::open_message() {
  RecordHead head{.kind = kind_};
  if (kind_ == RecordKind::call && node_->next_call_) {
    const CallFacts facts = *std::exchange(node_->next_call_, std::nullopt);
    head.principal = facts.principal;
    head.form = facts.form;
    if (facts.left)
      head.left_ms = static_cast<std::uint32_t>(std::min<std::int64_t>(facts.left->count(), RecordHead::kNoTime - 1));
    ++node_->calls_sent_;
    if (facts.number) ++node_->unanswered_;
    node_->call_written_ = facts.number;
  }
  if (kind_ == RecordKind::call && !head.principal) head.principal = std::exchange(node_->next_part_, std::nullopt);
  if (kind_ == RecordKind::event) head.principal = group_;
  return node_->link_.begin_record(head);
}

bool Node::Sink::is_overfull() noexcept {
  const bool overfull = node_->link_.waiting_bytes() > node_->context_->host.limits.soft_output;
  node_->overfull_ = node_->overfull_ || overfull;
  return overfull;
}

void Node::resume() {
  if (telling_ != Telling::nothing && link_.is_open() && has_room_for_news()) context_->flush();
  if (!overfull_ || link_.waiting_bytes() > context_->host.limits.soft_output / 2) return;
  overfull_ = false;
  if (provides_ != nullptr) provides_->dispatcher.on_writable();
  for (const auto& [principal, side] : callers_) side->dispatcher.on_writable();
  for (const auto& [group, side] : events_) side->dispatcher.on_writable();
}

void Node::begin_call(const CallFacts& facts) noexcept { next_call_ = facts; }

void Node::remember_call() {
  const std::optional<std::uint64_t> number = std::exchange(call_written_, std::nullopt);
  if (!number) return;
  if (sent_calls_.size() == kSentCallsMax) sent_calls_.pop_front();
  broker::if_memory_allows([&] { sent_calls_.push_back({.number = *number, .end = link_.written()}); });
}

void Node::mark_untaken(std::uint64_t reached) noexcept {
  if (provides_ != nullptr && !sent_calls_.empty()) {
    const broker::Peer& peer = provider();
    for (; !sent_calls_.empty() && sent_calls_.back().end > reached; sent_calls_.pop_back())
      context_->router.relay().not_taken(peer, sent_calls_.back().number);
  }
  sent_calls_.clear();
}

void Node::wants_flush() noexcept { context_->flush(); }

// ---- the session ----

// They may be others since the configuration was read again.
void Node::renew_limits() noexcept {
  limits_ = limits_of_node(context_->host.limits);
  link_.set_bounds(bounds_of(limits_));
}

void Node::opened() {
  renew_limits();
  provides_ = std::make_unique<Side>(*this, RecordKind::call);
  broker::Peer& peer = provider();
  peer.node = this;
  peer.of_node = true;
  peer.topics.of_node = true;  // what is said of its methods here is for our clients alone
  become(State::joining);
  subscriptions_ = 0;
  refused_ = 0;
  losing_ = broker::LostBy::node;
  unanswered_ = 0;
  call_written_.reset();
  sent_calls_.clear();
  overfull_ = false;
  forget_methods();
  heard_at_ = context_->now();
  told_client_ = 0;
  told_method_.clear();
  telling_ = Telling::clients;
  context_->flush();
  told_.clear();
  retained_there_.reset();
  retained_after_.reset();
  tell(RecordKind::retained, [&](Buffer& out) { out.append(tell_digest(context_->retained.digest())); });
}

// As much as may wait for the node. Names before methods: whoever knows of a method knows to whom it may be addressed.
// Without memory the session ends, and the next one tells all.
void Node::tell_more() noexcept try {
  while (link_.is_open() && telling_ != Telling::nothing && has_room_for_news()) {
    switch (telling_) {
      case Telling::clients: tell_more_clients(); break;
      case Telling::own_methods: tell_own_methods(); break;
      case Telling::methods: tell_more_methods(); break;
      case Telling::topics: tell_all_topics(); break;
      case Telling::nothing: break;
    }
  }
} catch (const std::bad_alloc&) {
  link_.fail();
}

bool Node::has_room_for_news() const noexcept { return link_.waiting_bytes() <= context_->host.limits.soft_output / 4; }

void Node::tell_more_clients() {
  ClientNews news;
  const broker::PeerTable& peers = context_->router.context().peers;
  while (const broker::Peer* const one = peers.next(told_client_)) {
    told_client_ = one->number;
    if (!one->name.empty()) news.add(one->name, true);
    if (news.size() == kClientsInRecord) return tell_clients(news);
  }
  tell_clients(news);
  telling_ = Telling::own_methods;
}

void Node::tell_own_methods() {
  MethodNewsWriter news;
  if (!context_->draining) {
    for (const auto& own : context_->host.registry.methods()) news.add_own(*own);
  }
  if (!news.empty()) tell_methods(news, false);
  telling_ = Telling::methods;
}

void Node::tell_more_methods() {
  MethodNewsWriter news;
  const broker::MethodTable& methods = context_->router.methods();
  while (const broker::Route* const route = context_->draining ? nullptr : methods.next(told_method_)) {
    told_method_ = route->name();
    if (const std::uint32_t count = providers_here(*route); count != 0) news.add(*route, count);
    if (news.bytes() > kNewsBytes) return tell_methods(news, false);
  }
  tell_methods(news, true);
  telling_ = Telling::topics;
}

// All at once, and no more than the other node takes.
void Node::tell_all_topics() {
  TopicNews news;
  std::size_t count = 0;
  context_->router.topics().each_here([&](std::string_view pattern, std::string_view group) {
    if (++count > kSubscriptionsMax) return;
    news.add(pattern, group, true);
    if (news.bytes() <= kNewsBytes) return;
    tell_topics(news);
    news.clear();
  });
  tell_topics(news);
  telling_ = Telling::nothing;
}

void Node::tell_topics(const TopicNews& news) {
  if (!link_.is_open() || news.empty()) return;
  tell(RecordKind::topics, [&](Buffer& out) { news.write(out); });
}

void Node::tell_clients(const ClientNews& news) {
  if (!link_.is_open() || news.size() == 0) return;
  tell(RecordKind::clients, [&](Buffer& out) { out.append(to_json(news)); });
}

void Node::tell_methods(const MethodNewsWriter& news, bool all) {
  if (!link_.is_open()) return;
  tell(RecordKind::methods, [&](Buffer& out) { news.write(out, all); });
}

void Node::ended(std::uint64_t reached) {
  ++sessions_lost_;
  mark_untaken(reached);
  end_session(losing_);
  if (link_.is_last()) context_->flush();  // it may go
}

void Node::end_session(broker::LostBy by) {
  next_call_.reset();
  next_part_.reset();
  callers_.clear();
  events_.clear();
  clients_.clear();
  publishes_.reset();
  if (state_ != State::foreign) become(by == broker::LostBy::bus ? State::unreachable : State::joining);
  if (by != broker::LostBy::bus) forget_methods();
  if (provides_ == nullptr) return;
  broker::Peer& peer = provider();
  peer.node = nullptr;
  peer.lost_by = by;
  const std::unique_ptr<Side> gone = std::move(provides_);
}

void Node::lose(broker::LostBy by) {
  losing_ = by;
  if (by == broker::LostBy::bus) heard_at_ = context_->now();  // it could not be heard
  if (link_.is_open()) {
    link_.reset();
  } else {
    end_session(by);
  }
}

// ---- a process is replaced ----

// What its clients are told of from now on, and what is retained, crosses by the process that has taken over.
void Node::end_events() noexcept {
  events_.clear();
  publishes_.reset();
  subscriptions_ = 0;
  retained_there_.reset();
  retained_after_.reset();
}

void Node::depart(std::string subject) noexcept {
  link_.go_on_at(std::move(subject));
  link_.be_last();
  departing_ = true;
  end_events();
  ping();  // by which it learns that it is spoken to there
}

void Node::stay_behind() {
  link_.leave(true);
  link_.be_last();
  telling_ = Telling::nothing;
  end_events();
}

void Node::expect_methods_of(const Node& former) {
  former_methods_ = former.former_methods_;
  if (former_methods_.size() < kMethodsMax) former_methods_.insert(former.methods_.begin(), former.methods_.end());
  count_absent();
}

void Node::supersede(std::string_view method) {
  if (!method.empty()) return end_method(method);
  if (provides_ == nullptr) return;
  provider().tells_itself = false;  // of those that are left nobody else says that they have gone
  while (!methods_.empty()) end_method(std::string{*methods_.begin()});
}

// What the process says that is the node by now.
bool Node::passes_over(RecordKind kind) const noexcept {
  switch (kind) {
    case RecordKind::methods:
    case RecordKind::clients: return departing_;
    case RecordKind::topics:
    case RecordKind::retained: return departing_ || context_->replaced;
    case RecordKind::event: return context_->replaced;
    case RecordKind::call:
    case RecordKind::answer: return false;
  }
  return true;
}

void Node::heard(const Heartbeat& heartbeat) {
  if (!link_.is_last()) heard_at_ = context_->now();  // of a last session its pings tell
  const bool first = heartbeat_.epoch == 0;
  const bool other = !first && heartbeat.epoch != heartbeat_.epoch;
  const bool was_foreign = state_ == State::foreign;
  heartbeat_ = heartbeat;
  const bool foreign = heartbeat.version != kProtocolVersion;
  if (foreign && !was_foreign) {
    lose(broker::LostBy::node);
    become(State::foreign);
    context_->log(LogLevel::warning, "cluster: node " + name_ + " speaks version " + std::to_string(heartbeat.version) +
                                         " of the protocol, this one version " + std::to_string(kProtocolVersion) +
                                         ": they do not call each other; update the older one");
  }
  if (!foreign && was_foreign) become(State::joining);
  if (other && !foreign) {
    context_->log(LogLevel::info, "cluster: node " + name_ + " has begun anew");
    lose(broker::LostBy::node);
  }
  if (!first || foreign) return;
  // What it has claimed (exclusive_claims.hpp) before it was known since when it is there is claimed anew.
  if (link_.is_open()) return lose(broker::LostBy::node);
  link_.maintain();
}

void Node::take(const Frame& frame) {
  if (!link_.is_last() || link_.is_of_session(frame)) heard_at_ = context_->now();
  if (frame.head.kind == FrameKind::pong) return take_pong(frame);
  if (state_ == State::foreign) return;
  link_.take(frame);
}

void Node::take_pong(const Frame& pong) {
  if (const std::optional<std::uint64_t> taken = link_.take_pong(pong)) {
    while (!sent_calls_.empty() && sent_calls_.front().end <= *taken) sent_calls_.pop_front();
  }
  const std::string_view payload = NodeLink::pinged(pong.payload);
  std::int64_t sent = 0;
  if (payload.size() != sizeof sent) return;
  std::memcpy(&sent, payload.data(), sizeof sent);
  const nanoseconds time = context_->now() - nanoseconds{sent};
  if (time < nanoseconds{0} || time > std::chrono::minutes{1}) return;
  latency_ = latency_ == nanoseconds{0} ? time : (7 * latency_ + time) / 8;
}

void Node::tick() {
  if (state_ == State::foreign) return;
  if (!link_.is_reading()) {
    renew_limits();
    end_revoked();
  }
  link_.maintain();
  resume();
  if (!link_.is_open()) return;
  if (retained_there_) compare_retained(*retained_there_);
  if (context_->router.relayed_calls().in_use() == 0) unanswered_ = 0;
  const bool is_quiet = unanswered_ == 0 && latency_ != nanoseconds{0} && link_.is_confirmed();
  if (!is_quiet || (link_.is_last() && ++quiet_ticks_ >= kQuietTicks)) ping();
}

void Node::ping() noexcept try {
  quiet_ticks_ = 0;
  const std::int64_t now = context_->now().count();
  char payload[sizeof now];
  std::memcpy(payload, &now, sizeof now);
  const std::string other = departing_ ? Subjects::process_word(name_, heartbeat_.epoch) : name_;
  link_.ping(context_->subjects.gone(context_->own, other), {payload, sizeof payload});
} catch (const std::bad_alloc&) {
  // As if it were lost.
}

// ---- what comes from there ----

void Node::received(const Record& record) {
  if (passes_over(record.head.kind)) return;
  if (record.head.kind == RecordKind::methods) return take_methods(record.body);
  if (record.head.kind == RecordKind::topics) return take_topics(record.body);
  if (record.head.kind == RecordKind::retained) return take_retained(record.body);
  if (record.head.kind == RecordKind::clients) return take_clients(record.body);
  Arrived arrived;
  const bool is_too_long = record.body.size() > limits_.max_message_size + kEnvelopeBytes;
  const ReadStatus status = is_too_long ? ReadStatus::too_large : read(record.body, limits_, arrived);
  if (status != ReadStatus::done) return refuse_message(record, status);
  if (record.head.kind == RecordKind::answer) return take_answer(arrived);
  if (record.head.kind == RecordKind::event) {
    restore(arrived);
    return take_event(record.head.principal.value_or(""), arrived.received);
  }
  take_call(record, arrived);
}

// One message, which is no batch: in JSON, or, as it came, in an encoding whose params and results may stay in it.
Node::ReadStatus Node::read(std::string_view text, const Limits& limits, Arrived& arrived) {
  Received& message = arrived.received;
  const Encoding encoding = text.empty() ? Encoding::json : message::encoding_of(text.front());
  if (encoding == Encoding::json) {
    const Scan scan = read_message(text, limits, true, message);
    if (scan.status == ScanStatus::too_deep) return ReadStatus::too_deep;
    const bool is_one = scan.status == ScanStatus::complete && message.kind != MessageKind::batch;
    return is_one ? ReadStatus::done : ReadStatus::malformed;
  }
  if (!message::codec_of(encoding).is_native) return read_whole(text, encoding, limits, arrived);
  message::NativeTranscoder& native = context_->host.loop_context.codecs.native(encoding);
  message::EnvelopeMembers members;
  if (const ReadStatus checked = native.check(text, limits, members); checked != ReadStatus::done) return checked;
  if (!members.is_single()) return ReadStatus::malformed;
  arrived.encoded = {text, encoding};
  return native.read(text, limits, arrived.text, message, {}, members);
}

// The same in an encoding of which messages become JSON as a whole, but for those that are as nearly all are.
Node::ReadStatus Node::read_whole(std::string_view text, Encoding encoding, const Limits& limits, Arrived& arrived) {
  message::Transcoder& transcoder = context_->host.loop_context.codecs.transcoder(encoding);
  if (transcoder.read_request(text, limits, arrived.id, arrived.received) ||
      transcoder.read_response(text, limits, arrived.id, arrived.received)) {
    arrived.encoded = {text, encoding};
    return ReadStatus::done;
  }
  const ReadStatus status = transcoder.to_json(text, limits, arrived.text);
  const bool has_form = transcoder.take_unrepresentable().empty();
  static_cast<void>(transcoder.take_cancels());
  if (status != ReadStatus::done) return status;
  return has_form ? read(arrived.text.padded(), limits, arrived) : ReadStatus::malformed;
}

// Has the message view what it holds in its encoding: for who is no dispatcher, which does so itself.
void Node::restore(Arrived& arrived) {
  const EncodedText& encoded = arrived.encoded;
  if (encoded.empty()) return;
  message::NativeTranscoder::restore(encoded.encoding, encoded.text, arrived.received);
  arrived.received.text = encoded.text;
}

// A response whose caller takes it as JSON alone.
bool Node::make_json(Arrived& arrived) {
  message::Transcoder& transcoder = context_->host.loop_context.codecs.transcoder(arrived.encoded.encoding);
  arrived.text.clear();
  const auto status = transcoder.checked_to_json(arrived.encoded.text, limits_, arrived.text);
  static_cast<void>(transcoder.take_unrepresentable());
  static_cast<void>(transcoder.take_cancels());
  if (status != message::Transcoder::Status::done) return false;
  arrived.encoded = {};
  return read_message(arrived.text.padded(), limits_, true, arrived.received).status == ScanStatus::complete;
}

// `form` is that of the answer to what has come as JSON: what the caller has sent may have been made that.
void Node::handle(rpc::Dispatcher& dispatcher, const Arrived& arrived, MessageForm form) {
  if (!arrived.encoded.empty()) form = MessageForm::native(arrived.encoded.encoding);
  dispatcher.answer_as(form);
  if (arrived.encoded.empty()) return dispatcher.handle(arrived.received);
  dispatcher.handle_encoded(arrived.received, {}, arrived.encoded);
}

// Whatever another node takes may be read so.
Limits Node::widest() const {
  Limits limits = limits_;
  limits.depth = kDepthMax;
  limits.max_message_size = std::max(limits.max_message_size, kRecordBytes);
  return limits;
}

// One that this node does not take, while the other one does. Its call ends, and nothing else.
void Node::refuse_message(const Record& record, ReadStatus status) {
  const bool is_too_long = status == ReadStatus::too_large;
  refuse(status == ReadStatus::malformed ? "a message is not understood, and passed over"
         : is_too_long ? "a message is longer than max_message_size allows here; set it alike on all nodes"
                       : "a message nests deeper than depth allows here; set it alike on all nodes");
  if (record.head.kind == RecordKind::event) return static_cast<void>(++events_lost_);
  Arrived arrived;
  if (read(record.body, widest(), arrived) != ReadStatus::done) return;
  restore(arrived);
  const Received& message = arrived.received;
  if (record.head.kind == RecordKind::call) {
    if (message.kind == MessageKind::request) return answer(message.id(), too_much(is_too_long, "no"));
    return end_call_here(id_of_item(message), too_much(is_too_long, "maybe"));
  }
  const Error error = too_much(is_too_long, "maybe");
  if (message.kind == MessageKind::response) {
    if (message.has(Member::id)) end_own_call(std::string{message.id()}, error);
    return;
  }
  break_own_call(id_of_item(message), error);
}

// The call whose item the notification is, as JSON text; empty for none.
std::string Node::id_of_item(const Received& message) const {
  if (message.kind != MessageKind::notification || message.method() != "rpc.item") return {};
  Reader& reader = *context_->host.loop_context.codecs.readers_of(message.encoding).reader;
  const std::string_view id = broker::members_of<1>(reader, message.params(), {"id"}).front();
  if (id.empty()) return {};
  reader.reset(id);
  return reader.json();
}

// A call of the node's callers that is in progress here, of which something has come that is not taken: they are told
// why before it is cancelled.
void Node::end_call_here(const std::string& id, const Error& error) {
  if (id.empty()) return;
  answer(id, error);
  Buffer text{message::cancel_request(id)};
  Arrived cancel;
  static_cast<void>(read_message(text.padded(), limits_, true, cancel.received));
  tell_sides(cancel);
}

// Who provides it does not know of that yet.
void Node::break_own_call(const std::string& id, const Error& error) {
  if (id.empty()) return;
  end_own_call(id, error);
  tell(RecordKind::call, [&](Buffer& out) { out.append(message::cancel_request(id)); });
}

// As if the node had answered so. `id` is JSON text, empty for none.
void Node::end_own_call(const std::string& id, const Error& error) {
  if (id.empty()) return;
  Buffer text;
  write_error(text, error, id);
  Arrived ended;
  static_cast<void>(read_message(text.padded(), limits_, true, ended.received));
  take_answer(ended);
}

void Node::take_answer(Arrived& arrived) {
  if (provides_ == nullptr) return;
  rpc::Dispatcher& dispatcher = provides_->dispatcher;
  const Received& message = arrived.received;
  if (message.kind == MessageKind::response) {
    if (!arrived.encoded.empty() && !dispatcher.takes_encoded(message)) {
      const std::string id{message.id()};
      if (!make_json(arrived)) return end_own_call(id, too_much(true, "maybe"));
    }
    restore(arrived);
    // One that answers no call is of one that was cancelled, which is counted as long as others are in progress.
    if (dispatcher.response(message) && unanswered_ != 0 && --unanswered_ == 0) sent_calls_.clear();
    return;
  }
  if (message.kind == MessageKind::invalid && message.has(Member::id))
    return end_own_call(std::string{message.id()}, context_->router.context().errors.malformed);
  if (!belongs_to_a_call(message)) return;
  const rpc::Authority* const authority = context_->host.loop_context.services.authority.get();
  if (authority != nullptr && !dispatcher.is_still_known())
    dispatcher.identify(kNodes.find(*authority, {}), {kNodes, name_});
  handle(dispatcher, arrived);
}

// Whether it is what comes before an answer, or behind one that has begun a subscription: nothing else is for our
// callers, and the node is nobody who may call.
bool Node::belongs_to_a_call(const Received& message) const {
  if (message.kind != MessageKind::notification || message.method_escaped) return false;
  const std::string_view name = message.method();
  if (name == "rpc.item" || name == "rpc.credit" || name == "$/progress") return true;
  const auto& source = provider().source;
  return source != nullptr && source->notifications.contains(name);
}

Node::Side* Node::side_of(std::string_view principal) {
  auto found = callers_.find(principal);
  if (found != callers_.end() && !found->second->dispatcher.is_still_known()) {
    found->second->dispatcher.end_calls(principal_changed());
    callers_.erase(found);
    found = callers_.end();
  }
  if (found != callers_.end()) return found->second.get();
  const rpc::Authority* const authority = context_->host.loop_context.services.authority.get();
  const Principal* const known = authority != nullptr ? authority->find_named(principal) : nullptr;
  if (authority != nullptr && known == nullptr) return nullptr;
  if (callers_.size() >= kSidesMax) drop_idle_sides();
  found = callers_.emplace(std::string{principal}, std::make_unique<Side>(*this, RecordKind::answer)).first;
  Side& side = *found->second;
  auto& peer = static_cast<broker::Peer&>(*side.dispatcher.join_broker());
  peer.node = this;
  peer.of_node = true;
  if (known != nullptr) side.dispatcher.identify(known, {kVouched, std::string{principal}});
  return &side;
}

// The calls of a principal that may do other things than before end, as those of any client do, and its next ones are
// admitted anew.
void Node::end_revoked() noexcept {
  const auto& authority = context_->host.loop_context.services.authority;
  if (authority_ == authority) return;
  broker::if_memory_allows([&] {
    const Error error = principal_changed();
    std::erase_if(callers_, [&](const auto& one) {
      rpc::Dispatcher& dispatcher = one.second->dispatcher;
      if (dispatcher.is_still_known()) return false;
      dispatcher.end_calls(error);
      return true;
    });
    authority_ = authority;
  });
}

void Node::drop_idle_sides() {
  std::erase_if(callers_, [](const auto& one) {
    return one.second->dispatcher.in_flight() == 0 && !one.second->dispatcher.idle_exempt();
  });
}

void Node::answer(std::string_view id, const Error& error) {
  tell(RecordKind::answer, [&](Buffer& out) { write_error(out, error, id); });
}

void Node::refuse_principal(const Received& message) {
  if (message.kind != MessageKind::request) return;
  answer(message.id(), message::make(ErrorCode::unauthenticated,
                                     "the node vouches for a principal that this node does not know", "no"));
}

void Node::take_call(const Record& record, const Arrived& arrived) {
  const Received& message = arrived.received;
  if (message.kind == MessageKind::response) return;
  // Of what is no request its own dispatcher says so.
  const bool is_call = message.kind == MessageKind::request || message.kind == MessageKind::notification;
  std::string name;
  if (is_call && message.method_escaped) {
    name = from_json<std::string>(message[Member::method]).value_or("");
  } else if (is_call) {
    name = message.method();
  }
  if (!record.head.principal) {
    // Of a call that is in progress, by its id, which is unique among all those of the node.
    if (message.kind != MessageKind::notification) return refuse_principal(message);
    if (is_for_own_broker(name) && !rpc::belongs_to_a_call(message)) return;
    return tell_sides(arrived);
  }
  // Where nobody has to say who he is, names say nothing.
  const bool named = context_->host.loop_context.services.authority != nullptr;
  const std::string_view principal = named ? *record.head.principal : std::string_view{};
  if (rpc::belongs_to_a_call(message)) {
    const auto found = callers_.find(principal);
    if (found != callers_.end() && found->second->dispatcher.is_still_known())
      handle(found->second->dispatcher, arrived);
    return;
  }
  Side* const side = side_of(principal);
  if (side == nullptr) return refuse_principal(message);
  if (is_for_own_broker(name)) {
    if (message.kind == MessageKind::request)
      answer(message.id(), Error::with_data(ErrorCode::invalid_request, R"({"reason":"needs_connection"})"));
    return;
  }
  const bool bounded = record.head.left_ms < limits_.call_timeout_ms;
  side->dispatcher.limit_timeout(bounded ? record.head.left_ms : rpc::Dispatcher::kNoTimeout);
  // Items of a stream are written in an encoding in which all messages may stay, and in no other.
  const Encoding spoken = record.head.form.sent;
  const bool natively = record.head.form.natively && message::codec_of(spoken).is_native;
  handle(side->dispatcher, arrived, natively ? record.head.form : MessageForm::text(spoken));
}

// What belongs to a call that is in progress, which one of them has.
void Node::tell_sides(const Arrived& arrived) {
  for (const auto& [principal, side] : callers_) {
    if (side->dispatcher.is_still_known()) handle(side->dispatcher, arrived);
  }
}

// What is not understood is passed over: to begin anew would bring the same again.
void Node::refuse_news(std::string_view what) {
  refuse("what it tells of its " + std::string{what} + " is not understood, and passed over");
}

// Whatever a node says, the log is not filled with it.
void Node::refuse(const std::string& why) {
  constexpr int kLinesMax = 10;  // of a session
  if (++refused_ > kLinesMax) return;
  context_->log(LogLevel::warning,
                "cluster: node " + name_ + ": " + why + (refused_ == kLinesMax ? "; no more is said of it" : ""));
}

std::size_t Node::calls_here() const noexcept {
  std::size_t calls = 0;
  for (const auto& [principal, side] : callers_) calls += side->dispatcher.in_flight();
  return calls;
}

}  // namespace wirecall::cluster
