// OperationsLog: what a broker writes to the log of what its clients do: who comes and goes, who provides what, a
// sample of the calls, and what fails. Of each it writes so much in a second and no more, since it is clients who cause
// it. Nothing that is a secret is handed to it. One thread. Implements docs/options.md "The log".
#pragma once

#include <cstddef>
#include <initializer_list>

#include "wirecall/error.hpp"
#include "wirecall/log.hpp"

namespace wirecall::rpc {
struct LoopContext;
}

namespace wirecall::broker {

class Peer;
struct Provider;

class OperationsLog {
 public:
  /// `loop_context` outlives it. One call of `calls_every` is written, none where that is 0.
  OperationsLog(const rpc::LoopContext& loop_context, std::uint32_t calls_every) noexcept
      : loop_context_(&loop_context), calls_every_(calls_every), until_call_(calls_every) {}

  void greeted(const Peer& peer) noexcept;
  /// `peer` has taken the place of another connection.
  void resumed(const Peer& peer) noexcept;
  /// One that has said hello, provided or subscribed.
  void left(const Peer& peer) noexcept;
  /// So many methods, of which `method` is the first, or them `no_more`.
  void provides(const Peer& peer, std::string_view method, std::size_t methods, bool no_more) noexcept;
  void kicked(const Peer& by, std::string_view client) noexcept;

  struct Answered {
    std::string_view method;  ///< as it is registered
    std::string_view client;  ///< empty where that is not known
    const Provider& provider;
    std::chrono::nanoseconds time;
    bool failed;
  };
  /// Whether the call that a provider has answered is one that is written.
  [[nodiscard]] bool is_sample() noexcept { return calls_every_ != 0 && --until_call_ == 0; }
  void answered(const Answered& call) noexcept;

  /// A call, or a request to the broker itself, of `client`, null where that is not known, has come to an error that
  /// the broker has made. `about` is what a request to the broker names, empty for nothing.
  void failed(std::string_view method, const Peer* client, const Error& error, std::string_view about = {}) noexcept;
  /// The same of a call that nobody provides the method for: what a caller waits for, and calls again.
  void not_provided(std::string_view method, const Peer* client, const Error& error) noexcept;
  /// `client` has called a method that it may not call.
  void not_granted(const Peer& client, std::string_view method) noexcept;

 private:
  // How many records of one kind are written in a second.
  struct Budget {
    std::uint32_t a_second;
    std::string_view left_out_text;
    std::chrono::nanoseconds second{};  // when the present one began
    std::uint32_t written = 0;          // in this second
    std::int64_t left_out = 0;          // since the last one that was written
  };

  [[nodiscard]] std::chrono::nanoseconds now() const noexcept;
  [[nodiscard]] bool admits(Budget& budget, LogLevel level) noexcept;
  void tell_of_client(std::string_view message, std::initializer_list<LogField> fields) noexcept;
  void write_failure(LogLevel level, std::string_view method, const Peer* client, const Error& error,
                     std::string_view about) const noexcept;
  void write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) const noexcept;

  const rpc::LoopContext* loop_context_;
  std::uint32_t calls_every_;
  std::uint32_t until_call_;
  Budget clients_{.a_second = 100, .left_out_text = "clients that come and go are left out"};
  Budget not_provided_{.a_second = 10, .left_out_text = "calls that nobody is there for are left out"};
  Budget failures_{.a_second = 10, .left_out_text = "calls that have failed are left out"};
};

}  // namespace wirecall::broker
