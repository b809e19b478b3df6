// Opens a LocalStore, where this build has one: it needs SQLite.
#pragma once

#include <memory>

#include "durable/store.hpp"
#include "local_store/options.hpp"
#include "wirecall/detail/executor.hpp"
#include "wirecall/log.hpp"

namespace wirecall::local_store {

/// `executor` runs what follows each change on the loop's thread. Throws std::runtime_error that says what is wrong and
/// what helps.
[[nodiscard]] std::unique_ptr<durable::Store> open_local_store(LocalStoreOptions options,
                                                               std::shared_ptr<detail::Executor> executor, LogSink log,
                                                               Opening opening = Opening::first);

}  // namespace wirecall::local_store
