// What a Server consists of: its loops, and what they share. For the sources of this layer alone.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>

#include "http/settings.hpp"
#include "rpc/broker.hpp"
#include "rpc/openrpc.hpp"
#include "runtime/thread_pool.hpp"
#include "server/serving_loop.hpp"
#include "transport/inherited_sockets.hpp"
#include "wirecall/server.hpp"

namespace wirecall {

struct Server::State {
  State(Options given, std::shared_ptr<std::atomic<LogLevel>> level, const rpc::BrokerFactory& broker);
  State(State&&) = delete;
  ~State() {
    if (threads) threads->stop();  // what blocks ends before what it would be answered by
    readers.stop();
  }

  [[nodiscard]] std::size_t threads_more() const noexcept { return loops.size() - 1 + io_threads.size(); }
  [[nodiscard]] std::exception_ptr run_thread(std::size_t at) noexcept;
  void end_threads() noexcept {
    stopping.store(true);
    wake_all();
  }
  void end_io_threads() noexcept {
    io_stopping.store(true);
    for (transport::IoThread* const io : io_threads) io->loop().wake();
  }
  Endpoint listen_on_each(const Endpoint& endpoint);
  Endpoint listen_for_datagrams(const Endpoint& endpoint);
  void require_safe_methods() const;
  void require_all_methods() const;
  void is_bound(const Endpoint& endpoint);
  void hand_round(
      transport::PendingConnection connection);  // each loop in its turn is given one of those that come to the first
  void wake_all() noexcept {
    for (const auto& loop : loops) loop->loop().wake();
  }
  [[nodiscard]] Stats stats() const {
    Stats sum;
    for (const auto& loop : loops) sum += loop->stats();
    return sum;
  }

  // On the thread of the loop that is asked: a broker has but one.
  [[nodiscard]] std::unique_ptr<rpc::Rendering> metrics(rpc::Asker asker) const {
    if (const rpc::Broker* const broker = loops.front()->broker()) return broker->metrics(std::move(asker));
    return std::make_unique<rpc::PlainText>(format_stats(StatsFormat::prometheus, stats()));
  }

  // In the order in which they need each other: what is below goes first.
  const Options options;  // but for its limits and its log_level, which are what they were at first
  const std::shared_ptr<std::atomic<LogLevel>> log_level;
  Registry registry;
  net::HttpSettings http;
  std::unique_ptr<runtime::ThreadPool> threads;  // for handlers that block; null for none
  runtime::ThreadPool readers{1};                // of long messages: they take turns, and a processor is left to others
  std::mutex tls_mutex;                          // of shared.tls once the loops have been made
  net::ServerShared shared;
  std::vector<std::unique_ptr<net::ServingLoop>> loops;  // at least one; of a broker just one
  std::vector<transport::IoThread*> io_threads;          // of the broker's loop
  transport::InheritedSockets inherited;                 // from another process; `listen` takes its own
  std::optional<Endpoint> datagrams;  // where it listens for them, the last of several; none for nowhere
  std::size_t next = 0;               // whose turn it is to be handed a connection: the first loop's

  std::atomic<bool> stop_asked{false};
  std::atomic<bool> hurry_asked{false};
  // Of the present run.
  std::atomic<bool> stopping{false};
  std::atomic<bool> hurrying{false};
  std::atomic<bool> io_stopping{false};         // the broker's loop has said all that it has to
  std::atomic<std::size_t> threads_running{0};  // without the first
};

}  // namespace wirecall
