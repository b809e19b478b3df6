// See listeners.hpp.
#include "server/listeners.hpp"

#include <fcntl.h>
#include <stdexcept>

#include "runtime/descriptor.hpp"

namespace wirecall {

Listeners::Listeners(std::string_view uri, std::size_t count) {
  const Endpoint endpoint{uri};
  if (count == 0) throw std::invalid_argument{"no process is to listen: say at least 1"};
  if (!State::is_for(endpoint.kind()))
    throw std::invalid_argument{endpoint.uri() + " is not for several processes: name a tcp or unix endpoint"};
  std::vector<transport::BoundSocket> all;
  if (endpoint.kind() == EndpointKind::tcp)
    all = transport::listen_together(endpoint, count);
  else
    all.push_back(transport::listen_on(endpoint));
  state_ = std::make_unique<State>(std::move(all), count);
}

Listeners::Listeners(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
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

// A process has one of them, or several where there are more sockets than processes.
std::vector<transport::BoundSocket> Listeners::State::share(std::size_t index) const {
  std::vector<runtime::Descriptor> descriptors;
  for (std::size_t i = index % all.size(); i < all.size(); i += count) {
    const transport::BoundSocket& bound = all[i];
    if (!bound.listens && !transport::begin_to_listen(bound.descriptor))
      throw std::system_error{errno, std::generic_category(), "cannot listen on " + bound.endpoint.uri()};
    descriptors.emplace_back(::fcntl(bound.descriptor, F_DUPFD_CLOEXEC, 0), "a listener is shared");
  }
  std::vector<transport::BoundSocket> own;
  own.reserve(descriptors.size());
  for (runtime::Descriptor& one : descriptors)
    own.push_back(
        {.descriptor = one.release(), .endpoint = all.front().endpoint, .file = {}, .shared = all.size() < count});
  return own;
}

}  // namespace wirecall
