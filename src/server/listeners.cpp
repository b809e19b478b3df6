// See listeners.hpp.
#include "server/listeners.hpp"

#include <fcntl.h>
#include <stdexcept>

namespace wirecall {

Listeners::Listeners(std::string_view uri, std::size_t count) : state_(std::make_unique<State>()) {
  const Endpoint endpoint{uri};
  if (count == 0) throw std::invalid_argument{"no process is to listen: say at least 1"};
  if (endpoint.kind() == EndpointKind::tcp) {
    state_->all = transport::listen_together(endpoint, count);
  } else if (endpoint.kind() == EndpointKind::unix_socket) {
    state_->all.push_back(transport::listen_on(endpoint));
  } else {
    throw std::invalid_argument{endpoint.uri() + " is not for several processes: name a tcp or unix endpoint"};
  }
  state_->count = count;
}

Listeners::Listeners(Listeners&&) noexcept = default;
Listeners::~Listeners() = default;

const Endpoint& Listeners::endpoint() const noexcept { return state_->all.front().endpoint; }
std::size_t Listeners::count() const noexcept { return state_->count; }

Listeners::State::~State() {
  for (transport::BoundSocket& bound : all) {
    if (::getpid() != maker) bound.file.keep();
    ::close(bound.descriptor);
  }
}

transport::BoundSocket Listeners::State::share(std::size_t index) const {
  const transport::BoundSocket& bound = all[index % all.size()];
  const int descriptor = ::fcntl(bound.descriptor, F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0) throw std::system_error{errno, std::generic_category(), "a listener cannot be shared"};
  return {.descriptor = descriptor, .endpoint = bound.endpoint, .file = {}, .shared = all.size() < count};
}

}  // namespace wirecall
