// See open.hpp: of a build without SQLite.
#include <stdexcept>

#include "local_store/open.hpp"

namespace wirecall::local_store {

std::unique_ptr<durable::Store> open_local_store(LocalStoreOptions, std::shared_ptr<detail::Executor>, LogSink,
                                                 Opening) {
  throw std::runtime_error{
      "durable.path: this build of wirecall has no durable store; build it where SQLite (Debian's libsqlite3-dev) is "
      "installed"};
}

}  // namespace wirecall::local_store
