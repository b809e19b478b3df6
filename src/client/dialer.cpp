// See dialer.hpp.
#include "client/dialer.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <thread>

#include "base/open_file.hpp"
#include "transport/endpoint_socket.hpp"
#include "transport/openssl_use.hpp"
#include "transport/own_stream.hpp"
#include "transport/tls_connect.hpp"

namespace wirecall::net {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Shared with the thread that dials, which may outlive the dialer: resolving a name cannot be interrupted.
struct Dialer::Attempt {
  std::mutex mutex;
  bool abandoned = false;
  std::optional<Result> result;
  std::function<void()> wake;  // not called any more once abandoned
};

using ClientContext = std::shared_ptr<const transport::TlsClientContext>;

static ClientContext context_of(const ClientOptions& options) {
  const ClientTlsOptions& tls = options.tls;
  auto context = std::make_shared<const transport::TlsClientContext>(
      transport::TlsClientSettings{.cafile = options.cafile,
                                   .own = {.certificate = tls.client_cert, .key = tls.client_key},
                                   .pin = tls.pin,
                                   .verify = !tls.no_verify});
  warn_of_open_file(options.log, tls.client_key, "tls.client_key", "a private key");
  if (tls.no_verify && tls.pin.empty())
    options.log(LogLevel::warning,
                "tls.no_verify: any server is accepted, and anybody on the way can read and change all that is sent");
  return context;
}

// The handshake has what is left of the time.
static transport::PendingConnection dial(const Endpoint& endpoint, milliseconds timeout, const ClientContext& context,
                                         const std::optional<transport::HttpProxy>& proxy) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const int socket =
      proxy ? transport::connect_through(*proxy, endpoint, timeout) : transport::connect_socket(endpoint, timeout);
  if (!endpoint.encrypted()) return transport::PendingConnection{socket};
  const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
  return transport::encrypt(socket, endpoint, left, context);
}

static DialFunction own_dial_function(std::span<const Endpoint> endpoints, const ClientOptions& options) {
  for (const Endpoint& endpoint : endpoints) {
    if (endpoint.encrypted())
      throw std::invalid_argument{"cannot connect to " + endpoint.uri() +
                                  ": there is no TLS over a transport of one's own; name an endpoint without it"};
  }
  return [connect = options.connect](const Endpoint& endpoint, milliseconds timeout) {
    std::unique_ptr<Transport> made = connect(endpoint, timeout);
    if (made == nullptr)
      throw std::runtime_error{"cannot connect to " + endpoint.uri() + ": ClientOptions.connect has made nothing"};
    return transport::PendingConnection{std::make_unique<transport::OwnConnection>(std::move(made))};
  };
}

DialFunction dial_function(std::span<const Endpoint> endpoints, const ClientOptions& options) {
  if (options.connect) return own_dial_function(endpoints, options);
  std::map<std::string, std::optional<transport::HttpProxy>> proxies;
  for (const Endpoint& endpoint : endpoints) proxies.emplace(endpoint.uri(), proxy_for(endpoint, options));
  const ClientContext context =
      std::ranges::any_of(endpoints, &Endpoint::encrypted) ? context_of(options) : ClientContext{};
  return [context, proxies](const Endpoint& endpoint, milliseconds timeout) {
    const auto& proxy = proxies.at(endpoint.uri());
    if (!proxy && !endpoint.encrypted()) return transport::connect_to(endpoint, timeout);
    return dial(endpoint, timeout, context, proxy);
  };
}

std::optional<transport::HttpProxy> proxy_for(const Endpoint& endpoint, const ClientOptions& options) {
  return transport::proxy_for(endpoint, options.proxy);
}

Dialer::Dialer(const std::vector<Endpoint>& endpoints, const ClientOptions& options, DialFunction dial, unsigned seed)
    : endpoints_(&endpoints), options_(&options), dial_(std::move(dial)), random_(seed) {}

Dialer::~Dialer() {
  if (attempt_ != nullptr) abandon();
}

void Dialer::abandon() {
  {
    const std::scoped_lock lock{attempt_->mutex};
    attempt_->abandoned = true;
    attempt_->result.reset();
  }
  attempt_.reset();
}

Dialer::Result Dialer::attempt(const DialFunction& dial, const Endpoint& endpoint, milliseconds timeout) {
  try {
    try {
      return {.connection = dial(endpoint, timeout), .failure = {}};
    } catch (const std::runtime_error& error) {
      return {.connection = {}, .failure = error.what()};
    }
  } catch (const std::bad_alloc&) {
    return {.connection = {}, .failure = "no memory"};  // short, so that it needs none
  }
}

void Dialer::start(std::function<void()> wake, nanoseconds now) {
  auto shared = std::make_shared<Attempt>();
  shared->wake = std::move(wake);
  const milliseconds timeout{options_->connect_timeout_ms};
  auto tried = [shared, dial = dial_, target = endpoint(), timeout]() mutable {
    Result result = attempt(dial, target, timeout);
    transport::OpensslUse use;  // what goes with this thread may be OpenSSL's
    {
      const std::scoped_lock lock{shared->mutex};
      if (!shared->abandoned) {
        shared->result = std::move(result);
        shared->wake();
      }
    }
    result = {};
    dial = {};
    use.end_thread();
  };
  try {
    std::thread{std::move(tried)}.detach();
  } catch (const std::system_error& error) {
    shared->result = Result{.failure = std::string{"no thread can be had to connect on: "} + error.what()};
    shared->wake();
  }
  attempt_ = std::move(shared);
  given_up_at_ = now + timeout + kGrace;
}

std::optional<Dialer::Result> Dialer::poll(nanoseconds now) {
  std::optional<Result> result;
  {
    const std::scoped_lock lock{attempt_->mutex};
    result = std::exchange(attempt_->result, std::nullopt);
  }
  if (!result) {
    if (now < given_up_at_) return std::nullopt;
    result = Result{.failure = "cannot connect to " + endpoint().uri() +
                               ": its name was not resolved in time; check the name of the host, or give its address"};
    abandon();
  }
  attempt_.reset();
  return result;
}

void Dialer::failed(nanoseconds now) {
  turn_away();
  ++failures_;
  due_ = now;
  if (failures_ % endpoints_->size() != 0) return;
  due_ = now + pause_after(failures_ / endpoints_->size() - 1);
}

// Each round of failures doubles the pause. The random half keeps many clients of one server that comes back from
// coming all at once.
nanoseconds Dialer::pause_after(std::size_t rounds) {
  const std::uint64_t whole = std::min<std::uint64_t>(
      std::uint64_t{options_->reconnect_min_ms} << std::min<std::size_t>(rounds, 30), options_->reconnect_max_ms);
  const std::uint64_t half_us = whole * 500;
  return std::chrono::microseconds{half_us + std::uniform_int_distribution<std::uint64_t>{0, half_us}(random_)};
}

void Dialer::ended(nanoseconds now, bool useful) {
  if (!useful) return failed(now);
  failures_ = 0;
  due_ = now;
}

void Dialer::left(nanoseconds now, bool useful) {
  turn_away();
  if (useful) return ended(now, useful);
  // It has not failed, and may only have had nothing to do yet.
  due_ = now + pause_after(0);
}

}  // namespace wirecall::net
