// See nats_bus.hpp.
#include "nats/nats_bus.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "nats/nats_library.hpp"
#include "runtime/inbox.hpp"

namespace wirecall::net {

namespace {

using cluster::BusMessage;
using std::chrono::milliseconds;

constexpr milliseconds kConnectTimeout{2000};
constexpr milliseconds kConnectPause{250};
constexpr milliseconds kReconnectWait{100};
constexpr milliseconds kPingInterval{900};
constexpr milliseconds kClosing{1000};
// What is on the way to a subscription that has ended comes within that time, or never.
constexpr milliseconds kDraining{5000};
// What waits to be sent, or to be taken, before messages are lost: then sessions end.
constexpr int kWaitingBytesMax = 64 * 1024 * 1024;
// A frame's head, a heartbeat and something to say fit into it.
constexpr std::int64_t kPayloadMin = 512;
// Of one connection so many different ones are logged.
constexpr std::size_t kComplaintsMax = 16;

// libnats says of bytes: int.
int size_of(std::string_view text) noexcept { return static_cast<int>(text.size()); }

// Without what is secret in it.
std::string shown(const std::string& urls) {
  std::string result;
  for (std::size_t at = 0; at <= urls.size();) {
    const std::size_t end = std::min(urls.find(',', at), urls.size());
    std::string url = urls.substr(at, end - at);
    const std::size_t scheme = url.find("://");
    const std::size_t host = scheme == std::string::npos ? 0 : scheme + 3;
    if (const std::size_t user = url.rfind('@'); user != std::string::npos && user >= host)
      url.erase(host, user + 1 - host);
    if (!result.empty()) result += ',';
    result += url;
    at = end + 1;
  }
  return result;
}

// What libnats says, without where in its source: "(conn.c:733): ".
std::string_view without_place(std::string_view said) noexcept {
  const std::size_t end = said.find("): ");
  return said.starts_with('(') && end != std::string_view::npos ? said.substr(end + 3) : said;
}

class NatsBus final : public HeaderBus {
 public:
  NatsBus(Loop& loop, const ClusterOptions& options, std::string_view node, const LogSink& log);
  ~NatsBus() override;

  [[nodiscard]] State state() const noexcept override { return state_; }
  void on_state(std::function<void()> changed) override { changed_ = std::move(changed); }
  void subscribe(std::string subject, Handler handler) override { add(std::move(subject), std::move(handler)); }
  void subscribe_to_absence(std::string subject, Handler handler) override {
    add(std::move(subject), std::move(handler), {}, true);
  }
  void subscribe_in_group(std::string subject, std::string group, Handler handler) override {
    add(std::move(subject), std::move(handler), std::move(group));
  }
  void unsubscribe(std::string_view subject) noexcept override;
  [[nodiscard]] bool is_draining() const noexcept override;
  [[nodiscard]] bool publish(std::string_view subject, std::string_view reply,
                             std::string_view payload) noexcept override;
  [[nodiscard]] bool publish_with(std::span<const Header> headers, std::string_view subject, std::string_view reply,
                                  std::string_view payload) noexcept override;
  void flush() noexcept override;
  [[nodiscard]] std::size_t payload_bytes_max() const noexcept override { return payload_bytes_max_; }
  [[nodiscard]] std::size_t waiting_bytes() const noexcept override { return waiting_bytes_; }
  [[nodiscard]] std::string url() const override { return url_; }
  [[nodiscard]] std::string failure() const override { return failure_; }

 private:
  struct OptionsDeleter {
    const NatsLibrary* nats;
    void operator()(natsOptions* options) const noexcept { nats->natsOptions_Destroy(options); }
  };
  struct MessageDeleter {
    const NatsLibrary* nats;
    void operator()(natsMsg* message) const noexcept { nats->natsMsg_Destroy(message); }
  };
  using Message = std::unique_ptr<natsMsg, MessageDeleter>;
  using NatsOptions = std::unique_ptr<natsOptions, OptionsDeleter>;

  // What libnats's threads, and the one that connects, have of it. It outlives all of them.
  struct Shared {
    Shared(std::shared_ptr<runtime::Inbox> own_inbox, NatsBus& own_bus) : inbox(std::move(own_inbox)), bus(&own_bus) {}

    // Runs it on the loop, unless the bus has gone by then.
    template <class F>
    void post(std::shared_ptr<Shared> self, F act) {
      inbox->post_owed([self = std::move(self), act] {
        if (self->bus != nullptr) act(*self->bus);
      });
    }

    const std::shared_ptr<runtime::Inbox> inbox;
    NatsBus* bus;  // the loop's; null once it has gone
    std::atomic<bool> wants_write{false};
    std::mutex mutex;
    std::condition_variable changed;
    bool stopping = false;           // under the mutex
    bool closed = false;             // likewise
    natsConnection* made = nullptr;  // likewise: until `connected`
  };
  // Of the callbacks: null once closed.
  struct Closure {
    std::shared_ptr<Shared> shared;
  };
  // A callback of libnats's threads: has `kTold` called on the loop's.
  template <void (NatsBus::*kTold)()>
  static void post(natsConnection*, void* closure) {
    const std::shared_ptr<Shared> shared = static_cast<Closure*>(closure)->shared;
    shared->post(shared, [](NatsBus& bus) { (bus.*kTold)(); });
  }
  struct Subscription {
    std::string subject;
    Handler handler;
    std::string group;  // empty for none
    bool to_absence = false;
    bool ended = false;
    bool draining = false;  // it has ended, and what is on the way to it has not all come
    natsSubscription* subscribed = nullptr;
  };

  static void keep(std::unique_ptr<Closure> closure);
  void set_options(const ClusterOptions& options, std::string_view node);
  void require(natsStatus status, std::string_view option) const;
  void connect() noexcept;
  void connected();
  void lost();
  void could_not_connect(std::string why);
  void closed();
  void complain(std::string text);
  void destroy_connection() noexcept;
  void attached(int socket);
  void link_changed();
  void ready(Readiness ready);
  void take_messages();
  void add(std::string subject, Handler handler, std::string group = {}, bool to_absence = false);
  bool subscribe_at(Subscription& subscription);
  void subscribe_or_complain(Subscription& subscription);
  void nobody_subscribes(const std::string& subject);
  void become(State state);
  void want_write();

  const NatsLibrary& nats_;
  Loop* loop_;
  const LogSink* log_;
  const std::string url_;
  std::string failure_;
  NatsOptions options_;
  std::unique_ptr<Closure> closure_;
  State state_ = State::connecting;
  std::function<void()> changed_;
  std::vector<std::unique_ptr<Subscription>> subscriptions_;
  natsConnection* connection_ = nullptr;
  Watch watch_;
  bool watches_ = false;
  bool watches_writes_ = false;
  int socket_ = -1;  // libnats's
  std::size_t payload_bytes_max_ = 1 << 20;
  std::size_t waiting_bytes_ = 0;
  std::string subject_;  // scratch, ended by zero
  std::string reply_;
  std::vector<std::string> complaints_;  // that have been logged since it was connected
  std::thread connecting_;
};

// On which the library calls back while the loop is in a function of it: what it asks for is seen to afterwards.
thread_local bool in_library = false;

struct InLibrary {
  InLibrary() noexcept { in_library = true; }
  InLibrary(InLibrary&&) = delete;
  ~InLibrary() { in_library = false; }
};

// ---- making it ----

NatsBus::NatsBus(Loop& loop, const ClusterOptions& options, std::string_view node, const LogSink& log)
    : nats_(NatsLibrary::get()),
      loop_(&loop),
      log_(&log),
      url_(shown(options.url)),
      options_(nullptr, OptionsDeleter{&nats_}),
      closure_(new Closure{std::make_shared<Shared>(loop.inbox(), *this)}) {
  set_options(options, node);
  connecting_ = std::thread{[this] { connect(); }};
}

NatsBus::~NatsBus() {
  const std::shared_ptr<Shared> shared = closure_->shared;
  {
    const std::scoped_lock lock{shared->mutex};
    shared->stopping = true;
  }
  shared->changed.notify_all();
  connecting_.join();
  shared->bus = nullptr;
  watch_ = Watch{};
  if (connection_ == nullptr) connection_ = std::exchange(shared->made, nullptr);  // not known here yet
  if (connection_ == nullptr) return;
  {
    const InLibrary in;
    nats_.natsConnection_ProcessWriteEvent(connection_);  // the last words
  }
  nats_.natsConnection_Close(connection_);
  {
    std::unique_lock lock{shared->mutex};
    shared->changed.wait_for(lock, kClosing, [&] { return shared->closed; });
  }
  destroy_connection();
  keep(std::move(closure_));
}

void NatsBus::destroy_connection() noexcept {
  for (const auto& subscription : subscriptions_) {
    subscription->draining = false;
    nats_.natsSubscription_Destroy(std::exchange(subscription->subscribed, nullptr));
  }
  nats_.natsConnection_Destroy(std::exchange(connection_, nullptr));
}

// Of a thread of libnats's that is calling back nobody can tell when it has ended: so what it is given stays.
void NatsBus::keep(std::unique_ptr<Closure> closure) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<Closure>> kept;
  const std::scoped_lock lock{mutex};
  kept.push_back(std::move(closure));
}

void NatsBus::require(natsStatus status, std::string_view option) const {
  if (status == NATS_OK) return;
  const char* const said = nats_.nats_GetLastError(nullptr);
  throw std::invalid_argument{"cluster." + std::string{option} + ": " +
                              (said != nullptr ? said : nats_.natsStatus_GetText(status))};
}

void NatsBus::set_options(const ClusterOptions& options, std::string_view node) {
  natsOptions* made = nullptr;
  require(nats_.natsOptions_Create(&made), "url");
  options_.reset(made);
  std::vector<std::string> urls;
  for (std::size_t at = 0; at <= options.url.size();) {
    const std::size_t end = std::min(options.url.find(',', at), options.url.size());
    urls.push_back(options.url.substr(at, end - at));
    at = end + 1;
  }
  std::vector<const char*> texts;
  for (const std::string& url : urls) texts.push_back(url.c_str());
  require(nats_.natsOptions_SetServers(made, texts.data(), static_cast<int>(texts.size())), "url");
  require(nats_.natsOptions_SetName(made, ("wirecall " + std::string{node}).c_str()), "node");
  if (!options.credentials.empty())
    require(nats_.natsOptions_SetUserCredentialsFromFiles(made, options.credentials.c_str(), nullptr), "credentials");
  if (!options.nkey_seed.empty()) {
    require(nats_.natsOptions_SetNKeyFromSeed(made, options.nkey.c_str(), options.nkey_seed.c_str()), "nkey_seed");
  }
  if (!options.ca.empty() || !options.cert.empty()) require(nats_.natsOptions_SetSecure(made, true), "ca");
  if (!options.ca.empty()) require(nats_.natsOptions_LoadCATrustedCertificates(made, options.ca.c_str()), "ca");
  if (!options.cert.empty()) {
    require(nats_.natsOptions_LoadCertificatesChain(made, options.cert.c_str(), options.key.c_str()), "cert");
  }
  require(nats_.natsOptions_SetTimeout(made, kConnectTimeout.count()), "url");
  // A message leaves with the turn, not a millisecond later; and what could not be sent is not sent at all.
  require(nats_.natsOptions_SetSendAsap(made, true), "url");
  require(nats_.natsOptions_SetReconnectBufSize(made, 1), "url");
  require(nats_.natsOptions_SetMaxReconnect(made, -1), "url");
  require(nats_.natsOptions_SetReconnectWait(made, kReconnectWait.count()), "url");
  require(nats_.natsOptions_SetReconnectJitter(made, kReconnectWait.count(), kReconnectWait.count()), "url");
  require(nats_.natsOptions_SetPingInterval(made, kPingInterval.count()), "url");
  require(nats_.natsOptions_SetNoEcho(made, true), "url");

  require(nats_.natsOptions_SetDisconnectedCB(made, &NatsBus::post<&NatsBus::lost>, closure_.get()), "url");
  require(nats_.natsOptions_SetReconnectedCB(made, &NatsBus::post<&NatsBus::link_changed>, closure_.get()), "url");
  require(nats_.natsOptions_SetClosedCB(
              made,
              [](natsConnection*, void* closure) {
                const std::shared_ptr<Shared> shared = static_cast<Closure*>(closure)->shared;
                const std::scoped_lock lock{shared->mutex};
                shared->closed = true;
                shared->changed.notify_all();
                shared->post(shared, [](NatsBus& bus) { bus.closed(); });
              },
              closure_.get()),
          "url");
  // A message that was lost for want of room is found by its number.
  require(nats_.natsOptions_SetErrorHandler(
              made,
              [](natsConnection* connection, natsSubscription*, natsStatus status, void* closure) {
                const NatsLibrary& nats = NatsLibrary::get();
                const char* said = nullptr;
                if (nats.natsConnection_GetLastError(connection, &said) == NATS_OK || said == nullptr || *said == '\0')
                  said = nats.natsStatus_GetText(status);
                const std::shared_ptr<Shared> shared = static_cast<Closure*>(closure)->shared;
                shared->post(shared, [text = std::string{said}](NatsBus& bus) { bus.complain(text); });
              },
              closure_.get()),
          "url");
  require(nats_.natsOptions_SetEventLoop(
              made, closure_.get(),
              [](void** data, void* loop, natsConnection*, natsSock socket) {
                *data = loop;
                const std::shared_ptr<Shared> shared = static_cast<Closure*>(loop)->shared;
                shared->post(shared, [socket](NatsBus& bus) { bus.attached(socket); });
                return NATS_OK;
              },
              [](void*, bool) { return NATS_OK; },
              [](void* data, bool add) {
                if (data == nullptr) return NATS_OK;
                const std::shared_ptr<Shared> shared = static_cast<Closure*>(data)->shared;
                shared->wants_write.store(add);
                if (add && !in_library) shared->post(shared, [](NatsBus& bus) { bus.want_write(); });
                return NATS_OK;
              },
              [](void*) { return NATS_OK; }),
          "url");
}

// ---- the connection ----

// On its own thread, until there is one.
void NatsBus::connect() noexcept {
  const std::shared_ptr<Shared> shared = closure_->shared;
  while (true) {
    natsConnection* made = nullptr;
    const natsStatus status = nats_.natsConnection_Connect(&made, options_.get());
    if (status == NATS_OK) {
      const std::scoped_lock lock{shared->mutex};
      shared->made = made;
      shared->post(shared, [](NatsBus& bus) { bus.connected(); });
      return;
    }
    const char* const said = nats_.nats_GetLastError(nullptr);
    std::string why{without_place(said != nullptr && *said != '\0' ? said : nats_.natsStatus_GetText(status))};
    shared->post(shared, [why = std::move(why)](NatsBus& bus) { bus.could_not_connect(why); });
    std::unique_lock lock{shared->mutex};
    if (shared->changed.wait_for(lock, kConnectPause, [&] { return shared->stopping; })) return;
  }
}

void NatsBus::could_not_connect(std::string why) {
  const bool first = failure_.empty();
  failure_ = std::move(why);
  if (first && changed_) {
    complaints_.push_back(failure_);
    return changed_();
  }
  complain(failure_);
}

// Each once, until it is connected again.
void NatsBus::complain(std::string text) {
  if (complaints_.size() == kComplaintsMax || std::ranges::find(complaints_, text) != complaints_.end()) return;
  (*log_)(LogLevel::warning, "cluster: NATS at " + url_ + ": " + text);
  complaints_.push_back(std::move(text));
}

// libnats has given up, as it does where it is refused twice: so another connection is made.
void NatsBus::closed() {
  if (connection_ == nullptr) return;
  {
    const std::scoped_lock lock{closure_->shared->mutex};
    if (closure_->shared->stopping) return;
    closure_->shared->closed = false;
  }
  const char* said = nullptr;
  static_cast<void>(nats_.natsConnection_GetLastError(connection_, &said));
  const std::string why{without_place(said != nullptr && *said != '\0' ? said : "the connection is closed")};
  watch_ = Watch{};
  watches_ = false;
  socket_ = -1;
  become(State::disconnected);
  destroy_connection();
  connecting_.join();  // it has long ended
  connecting_ = std::thread{[this] { connect(); }};
  could_not_connect(why);
}

void NatsBus::connected() {
  {
    const std::scoped_lock lock{closure_->shared->mutex};
    connection_ = std::exchange(closure_->shared->made, nullptr);
  }
  // It may have been given up by now, which was told before this.
  if (nats_.natsConnection_Status(connection_) == NATS_CONN_STATUS_CLOSED) return closed();
  for (const auto& subscription : subscriptions_) {
    if (!subscription->ended) subscribe_or_complain(*subscription);
  }
  link_changed();
}

// The socket of a new connection, or of one that was made again.
void NatsBus::attached(int socket) {
  socket_ = socket;
  watches_writes_ = false;
  try {
    watch_ = loop_->watch(socket, Readiness::readable, [this](Readiness is, int) { ready(is); });
    watches_ = true;
  } catch (const std::exception& error) {
    failure_ = error.what();
  }
}

// It may be there again by now, by a new socket: then both are told.
void NatsBus::lost() {
  if (connection_ == nullptr) return;
  failure_ = "the connection to NATS is lost";
  for (const auto& subscription : subscriptions_) subscription->draining = false;
  become(State::disconnected);
  link_changed();
  if (state_ == State::connected) return;
  watch_ = Watch{};  // of a socket that has ended, and would be ready for ever
  watches_ = false;
}

void NatsBus::link_changed() {
  if (connection_ == nullptr || nats_.natsConnection_Status(connection_) != NATS_CONN_STATUS_CONNECTED) return;
  if (!watches_ && socket_ >= 0) attached(socket_);
  const std::int64_t payload_max = nats_.natsConnection_GetMaxPayload(connection_);
  failure_.clear();
  complaints_.clear();
  if (payload_max >= kPayloadMin) {
    payload_bytes_max_ = static_cast<std::size_t>(payload_max);
  } else {
    complain("max_payload is " + std::to_string(payload_max) + " bytes, brokers need " + std::to_string(kPayloadMin));
  }
  become(State::connected);
  flush();
}

void NatsBus::become(State state) {
  if (state_ == state) return;
  state_ = state;
  if (changed_) changed_();
}

// ---- messages ----

// A subscription that is read tells of absence without saying whose, so these are called back for, by another thread.
bool NatsBus::subscribe_at(Subscription& subscription) {
  const InLibrary in;
  const auto told = [](natsConnection*, natsSubscription*, natsMsg* message, void* closure) {
    const NatsLibrary& nats = NatsLibrary::get();
    const std::shared_ptr<Shared> shared = static_cast<Closure*>(closure)->shared;
    if (nats.natsMsg_IsNoResponders(message)) {
      shared->post(shared, [subject = std::string{nats.natsMsg_GetSubject(message)}](NatsBus& bus) {
        bus.nobody_subscribes(subject);
      });
    }
    nats.natsMsg_Destroy(message);
  };
  natsSubscription** const made = &subscription.subscribed;
  const char* const subject = subscription.subject.c_str();
  natsStatus status;
  if (subscription.to_absence) {
    status = nats_.natsConnection_Subscribe(made, connection_, subject, told, closure_.get());
  } else if (!subscription.group.empty()) {
    status = nats_.natsConnection_QueueSubscribeSync(made, connection_, subject, subscription.group.c_str());
  } else {
    status = nats_.natsConnection_SubscribeSync(made, connection_, subject);
  }
  if (status != NATS_OK) return false;
  nats_.natsSubscription_SetPendingLimits(subscription.subscribed, -1, kWaitingBytesMax);
  return true;
}

void NatsBus::subscribe_or_complain(Subscription& subscription) {
  if (!subscribe_at(subscription))
    complain("it takes no subscription to " + subscription.subject + ": what is sent there does not come");
}

void NatsBus::nobody_subscribes(const std::string& subject) {
  for (const auto& subscription : subscriptions_) {
    if (subscription->to_absence)
      subscription->handler({.subject = subject, .reply = {}, .payload = {}, .no_responders = true});
  }
}

void NatsBus::unsubscribe(std::string_view subject) noexcept {
  const InLibrary in;
  // It stays where it is: its messages may be on the way through it.
  for (const auto& subscription : subscriptions_) {
    if (subscription->subject != subject) continue;
    if (std::exchange(subscription->ended, true) || subscription->subscribed == nullptr) continue;
    subscription->draining = state_ == State::connected && nats_.natsSubscription_DrainTimeout(
                                                               subscription->subscribed, kDraining.count()) == NATS_OK;
    if (!subscription->draining) nats_.natsSubscription_Unsubscribe(subscription->subscribed);
  }
  want_write();
}

bool NatsBus::is_draining() const noexcept {
  return std::ranges::any_of(subscriptions_, [this](const auto& one) {
    return one->draining && nats_.natsSubscription_DrainCompletionStatus(one->subscribed) == NATS_ILLEGAL_STATE;
  });
}

void NatsBus::add(std::string subject, Handler handler, std::string group, bool to_absence) {
  auto added = std::make_unique<Subscription>(Subscription{.subject = std::move(subject),
                                                           .handler = std::move(handler),
                                                           .group = std::move(group),
                                                           .to_absence = to_absence});
  subscriptions_.push_back(std::move(added));
  if (connection_ == nullptr) return;
  subscribe_or_complain(*subscriptions_.back());
  want_write();
}

bool NatsBus::publish(std::string_view subject, std::string_view reply, std::string_view payload) noexcept {
  if (state_ != State::connected || waiting_bytes_ > kWaitingBytesMax) return false;
  try {
    subject_.assign(subject);
    reply_.assign(reply);
  } catch (const std::bad_alloc&) {
    return false;
  }
  const InLibrary in;
  waiting_bytes_ += payload.size();
  const natsStatus status =
      reply.empty() ? nats_.natsConnection_Publish(connection_, subject_.c_str(), payload.data(), size_of(payload))
                    : nats_.natsConnection_PublishRequest(connection_, subject_.c_str(), reply_.c_str(), payload.data(),
                                                          size_of(payload));
  if (status != NATS_OK) return false;
  return true;
}

bool NatsBus::publish_with(std::span<const Header> headers, std::string_view subject, std::string_view reply,
                           std::string_view payload) noexcept {
  if (state_ != State::connected || waiting_bytes_ > kWaitingBytesMax) return false;
  try {
    subject_.assign(subject);
    reply_.assign(reply);
  } catch (const std::bad_alloc&) {
    return false;
  }
  natsMsg* made = nullptr;
  if (nats_.natsMsg_Create(&made, subject_.c_str(), reply.empty() ? nullptr : reply_.c_str(), payload.data(),
                           size_of(payload)) != NATS_OK)
    return false;
  const Message message{made, MessageDeleter{&nats_}};
  for (const Header& header : headers) {
    if (nats_.natsMsgHeader_Set(made, header.name.c_str(), header.value.c_str()) != NATS_OK) return false;
  }
  const InLibrary in;
  waiting_bytes_ += payload.size();
  return nats_.natsConnection_PublishMsg(connection_, made) == NATS_OK;
}

void NatsBus::flush() noexcept {
  if (connection_ == nullptr) return;
  if (closure_->shared->wants_write.load()) {
    const InLibrary in;
    nats_.natsConnection_ProcessWriteEvent(connection_);
  }
  if (closure_->shared->wants_write.load()) {
    want_write();
    const int buffered = nats_.natsConnection_Buffered(connection_);
    waiting_bytes_ = buffered > 0 ? static_cast<std::size_t>(buffered) : 0;
  } else {
    waiting_bytes_ = 0;
  }
}

// What the system has not taken goes when it can.
void NatsBus::want_write() {
  if (watches_writes_ || !watches_) return;  // a new connection sends what waits
  try {
    watch_.want(Readiness::both);
    watches_writes_ = true;
  } catch (const std::bad_alloc&) {
    // With the next flush.
  }
}

void NatsBus::ready(Readiness ready) {
  if (connection_ == nullptr) return;
  if (wants(ready, Readiness::writable)) {
    flush();
    if (!closure_->shared->wants_write.load()) {
      watch_.want(Readiness::readable);
      watches_writes_ = false;
    }
  }
  if (!wants(ready, Readiness::readable)) return;
  {
    const InLibrary in;
    nats_.natsConnection_ProcessReadEvent(connection_);
  }
  take_messages();
  flush();
}

void NatsBus::take_messages() {
  // By index: a handler may subscribe to more; and while one is off the loop all of them may begin anew.
  for (std::size_t i = 0; i != subscriptions_.size(); ++i) {
    Subscription& subscription = *subscriptions_[i];
    if (subscription.to_absence) continue;
    while (subscription.subscribed != nullptr && (!subscription.ended || subscription.draining)) {
      natsMsg* message = nullptr;
      const natsStatus status = nats_.natsSubscription_NextMsg(&message, subscription.subscribed, 0);
      if (status != NATS_OK) {
        subscription.draining = subscription.draining && status == NATS_TIMEOUT;
        break;
      }
      const Message owned{message, MessageDeleter{&nats_}};
      const int size = nats_.natsMsg_GetDataLength(message);
      const char* said = nullptr;
      if (size == 0 && nats_.natsMsgHeader_Get(message, "Status", &said) != NATS_OK) said = nullptr;
      const char* const reply = nats_.natsMsg_GetReply(message);
      subscription.handler(BusMessage{.subject = nats_.natsMsg_GetSubject(message),
                                      .reply = reply != nullptr ? reply : "",
                                      .payload = {nats_.natsMsg_GetData(message), static_cast<std::size_t>(size)},
                                      .no_responders = nats_.natsMsg_IsNoResponders(message),
                                      .status = said != nullptr ? said : ""});
    }
  }
}

}  // namespace

std::unique_ptr<HeaderBus> make_nats_bus(Loop& loop, const ClusterOptions& options, std::string_view node,
                                         const LogSink& log) {
  return std::make_unique<NatsBus>(loop, options, node, log);
}

}  // namespace wirecall::net
