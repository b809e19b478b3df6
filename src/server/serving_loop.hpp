// ServingLoop: one loop of a server with the connections that live on it: accepts, serves, and in the end drains them.
// A server has one for each of its threads; nothing is shared between them but what does not change while they run.
// Made and given its acceptors by the thread that makes the server, before anything runs; from then on everything but
// `serve_elsewhere`, `stats` and waking is for the one thread at a time that has the loop.
#pragma once

#include <atomic>
#include <functional>

#include "base/log_pause.hpp"
#include "connection/connection.hpp"
#include "connection/long_message.hpp"
#include "connection/protocol_detector.hpp"
#include "connection/tls_service.hpp"
#include "http/protocols.hpp"
#include "http/zlib_deflate.hpp"
#include "rpc/broker.hpp"
#include "runtime/offload.hpp"
#include "server/loop_takeover.hpp"
#include "server/proxies.hpp"
#include "transport/acceptor.hpp"
#include "transport/inherited_sockets.hpp"
#include "transport/io_thread.hpp"
#include "transport/udp.hpp"
#include "wirecall/loop.hpp"
#include "wirecall/options.hpp"
#include "wirecall/stats.hpp"

namespace wirecall::net {

/// What all loops of one server share. Outlives them.
struct ServerShared {
  const Options& options;
  const Registry& registry;
  const HttpSettings& http;
  std::shared_ptr<const transport::TlsServerContext> tls = {};  ///< at first; null where no TLS is spoken
  runtime::ThreadPool* threads = nullptr;                       ///< for handlers that block; null for none
  runtime::ThreadPool* readers = nullptr;                       ///< for long messages; null for none
  rpc::BrokerFactory make_broker = {};                          ///< of the one loop of a broker; empty for none
  std::function<void()> wake_all = {};                          ///< wakes each of the loops; empty where there is one
  std::atomic<std::size_t> connections_open{0};
  std::atomic<std::size_t> loops_busy{0};  ///< that run, and do not drain yet or still have calls in progress
  /// Another process has the sockets, and serves those who connect from now on: the loops look on, once they are woken.
  std::atomic<bool> replaced{false};
};

class ServingLoop final : private ConnectionOwner, private Timer {
 public:
  ServingLoop(std::unique_ptr<runtime::Backend> backend, ServerShared& shared);
  ~ServingLoop();
  ServingLoop(ServingLoop&&) = delete;

  [[nodiscard]] Loop& loop() noexcept { return loop_; }
  /// Peers may connect from now on; `accepted` is given their connections. Throws as transport::open_acceptor does.
  const Endpoint& listen(const Endpoint& endpoint, transport::Listener::Accepted accepted);
  /// The same of a socket that listens already.
  void listen(transport::BoundSocket bound, transport::Listener::Accepted accepted);
  /// Datagrams that come there are served from now on.
  void listen(transport::BoundUdpSocket bound);
  /// The same of an interface's first queue (transport/xdp.hpp); throws as open_xdp does.
  void listen_on_xdp(const Endpoint& endpoint);
  /// Another thread may receive and send for this loop: one connection after the other is given to the next of those
  /// that there are, this one among them.
  transport::IoThread& add_io_thread(std::unique_ptr<runtime::Backend> backend);
  /// Serves the connection; or closes it, when there are as many as there may be.
  void open(transport::PendingConnection connection);
  /// The same; this thread receives and sends.
  void open_here(transport::PendingConnection connection) { take(std::move(connection), nullptr); }
  /// The same, from the thread of another loop. The connection is closed when this loop has gone.
  void serve_elsewhere(transport::PendingConnection connection);

  /// Duplicates of the sockets that it listens on, for another process; on its thread. Throws std::system_error, and
  /// std::runtime_error for an endpoint that cannot be another process's as well.
  [[nodiscard]] std::vector<transport::ListeningSocket> share_sockets() const;
  /// Before `run`: those of them that are only bound so far listen from now on.
  void begin_to_listen() noexcept;
  /// Before `run`: the files of the sockets that it was given, and listens on, go with it.
  void own_files();
  /// Likewise: those of its sockets stay.
  void keep_files() noexcept;
  /// As rpc::Broker, of which there may be none. On its thread.
  [[nodiscard]] bool settle() noexcept;
  void stay() noexcept;
  void open_store();
  /// What the broker of another process that takes over has to know; empty without one. On its thread.
  [[nodiscard]] std::string hand_over();
  /// The other has taken over: it is asked, over this connection, for what it asks. On its thread.
  void replaced_by(transport::PendingConnection other);
  /// Before `run`: the broker takes over from that of another process, which has said so. Throws std::invalid_argument.
  void take_over_from(transport::PendingConnection other, std::string_view state);

  /// Before `run`, by the thread that starts those of all loops: each keeps its datagram sockets until none has calls.
  void count_as_busy() noexcept;
  /// Serves until `stop` says so, or standard input has ended and there is nothing else; then takes no more
  /// connections, finishes the calls in progress, and closes: at once when `hurry` says so. Once another process has
  /// replaced this one, it takes no more connections, and serves those that it has until they have gone, or for
  /// Options::drain_ms, before it does the same. Returns 0, or the errno
  /// with which standard output has refused what was sent there.
  int run(const std::function<bool()>& stop, const std::function<bool()>& hurry);
  /// The errno with which the kernel refused what a takeover of the loop needs; 0 for none.
  [[nodiscard]] int takeover_refused() const noexcept { return takeover_.refused(); }
  /// Who may do what from now on: connections whose peers are not who they were are closed.
  void set_authority(std::shared_ptr<const rpc::Authority> authority);
  /// Whether peers have to say who they are.
  [[nodiscard]] bool asks_who_calls() const noexcept { return loop_context_.services.authority != nullptr; }
  /// Any thread: these are the limits of all its connections from its next turn on, and `taken` is let go of then, or
  /// with the loop.
  void set_limits(const Limits& limits, std::shared_ptr<const void> taken);
  /// Any thread: with which certificates connections are encrypted that come from its next turn on. Those go whose
  /// client's certificate it does not accept, where others vouch for clients now.
  void set_tls(std::shared_ptr<const transport::TlsServerContext> context);
  /// Any thread.
  [[nodiscard]] Stats stats() const;
  /// Null where connections cannot provide methods for each other.
  [[nodiscard]] const rpc::Broker* broker() const noexcept { return broker_.get(); }

 private:
  void connection_ended(Connection& connection, CloseReason reason, int error) override;
  void connection_promoted(Connection& detector, std::unique_ptr<Connection> promoted) override;
  void expired() override;
  void look_for_idle_later();
  [[nodiscard]] transport::Listener::Failed failed();
  void log_full();
  void take(transport::PendingConnection pending, transport::IoThread* io);
  [[nodiscard]] bool take_in(transport::PendingConnection pending, transport::IoThread* io, bool full);
  void serve(std::unique_ptr<transport::DatagramSocket> socket);
  void forget(std::size_t connections) noexcept;
  void turn(std::chrono::nanoseconds wait_max);
  [[nodiscard]] rpc::BrokerPeer& link_to(transport::PendingConnection other);
  void stop_accepting();
  void see_off(const std::function<bool()>& stop);
  void drain(const std::function<bool()>& hurry);
  void no_longer_busy();
  template <class F>
  void each(const F& act);
  [[nodiscard]] bool exhausted() const noexcept;
  [[nodiscard]] bool any(bool (Connection::*is)() const noexcept) const;

  ServerShared* shared_;
  const Options* options_;
  Limits limits_;  // all that is said of them here refers to these: they change on the loop's thread alone
  framing::JsonTextSettings text_{limits_, options_->delimiter};
  Protocols protocols_{text_, shared_->http};
  LogPause turned_away_;  // connections beyond the limit
  // In the order in which they need each other: what is below goes first.
  Loop loop_;
  rpc::LoopContext loop_context_;
  std::unique_ptr<rpc::Broker> broker_;
  Proxies proxies_{*options_, loop_context_};
  std::optional<TlsService> tls_;
  Host host_;
  std::vector<std::unique_ptr<transport::IoThread>> io_threads_;
  std::size_t next_io_thread_ = 0;  // whose turn it is to be given a connection: with all of them, this one's
  std::vector<std::unique_ptr<transport::Acceptor>> acceptors_;
  struct DatagramEndpoint {
    int descriptor;  // of the socket
    Endpoint endpoint;
    bool passed = false;
  };
  std::vector<DatagramEndpoint> datagram_endpoints_;  // of `datagrams_`, at first
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Connection>> datagrams_;  // sockets
  std::vector<std::unique_ptr<Connection>> ended_;      // in this turn, or while a handler is off the loop
  bool counted_as_busy_ = false;
  std::optional<std::chrono::nanoseconds> seen_off_until_;  // once another process has replaced this one
  LoopTakeover takeover_;
  std::optional<runtime::Offload> offload_;
  std::optional<runtime::Offload> readers_;
  std::optional<LongReader> long_reader_;
  std::optional<ZlibDeflate> deflate_;
};

}  // namespace wirecall::net
