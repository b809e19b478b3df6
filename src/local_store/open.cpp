// See open.hpp.
#include "local_store/open.hpp"

#include "local_store/local_store.hpp"

namespace wirecall::local_store {

std::unique_ptr<durable::Store> open_local_store(LocalStoreOptions options, std::shared_ptr<detail::Executor> executor,
                                                 LogSink log, Opening opening) {
  return std::make_unique<LocalStore>(std::move(options), std::move(executor), std::move(log), opening);
}

}  // namespace wirecall::local_store
