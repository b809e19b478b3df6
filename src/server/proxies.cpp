// See proxies.hpp.
#include "server/proxies.hpp"

#include <stdexcept>
#include <sys/socket.h>

#include "connection/proxied_stream.hpp"
#include "transport/socket.hpp"

namespace wirecall::net {

// Who connects again and again must not fill the log: so long it is silent of them.
constexpr std::chrono::nanoseconds kLogPause = std::chrono::minutes{1};

Proxies::Proxies(const Options& options, rpc::LoopContext& loop_context)
    : options_(&options), loop_context_(&loop_context), from_(options.proxy_from, "proxy_from") {
  if (options.proxy_protocol && from_.empty())
    throw std::invalid_argument{
        "proxy_protocol is true, and proxy_from is empty: name the proxies that are believed, as 10.0.0.7 or "
        "10.0.0.0/8"};
  if (!options.proxy_protocol && !options.proxy_from.empty())
    throw std::invalid_argument{
        "proxy_from names proxies, and proxy_protocol is false: set it to true, or nobody is believed"};
}

Proxies::Way Proxies::way_of(int socket) {
  if (!options_->proxy_protocol || socket < 0) return Way::direct;
  sockaddr_storage address{};
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (::getsockname(socket, generic, &size) == 0 && address.ss_family != AF_INET && address.ss_family != AF_INET6)
    return Way::direct;
  size = sizeof address;
  if (::getpeername(socket, generic, &size) == 0 && from_.contains(generic)) return Way::proxied;
  refuse("it is none of proxy_from", transport::peer_source(socket));
  return Way::refused;
}

std::unique_ptr<transport::ByteStream> Proxies::behind_header(std::unique_ptr<transport::ByteStream> stream) {
  return std::make_unique<ProxiedStream>(std::move(stream), [this](std::string_view cause, const std::string& source) {
    if (!cause.empty()) return refuse(cause, source);
    options_->log(LogLevel::debug, "a proxy has named its client", {{"source", source}});
  });
}

void Proxies::refuse(std::string_view cause, const std::string& source) {
  ++loop_context_->stats.proxy_headers_refused;
  ++refused_;
  const std::chrono::nanoseconds now = loop_context_->now();
  if (logged_at_ && now - *logged_at_ < kLogPause) return;
  logged_at_ = now;
  options_->log(LogLevel::warning, "a connection is refused: it has to begin with the PROXY header of a proxy",
                {{"cause", cause}, {"source", source}, {"refused", std::exchange(refused_, 0)}});
}

}  // namespace wirecall::net
