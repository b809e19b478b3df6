// stdio: the standard input and output of a process as one connection. They may be pipes, terminals, files or sockets,
// which no one way of waiting covers, and making them non-blocking would make them so for the shell that shares them.
// So a thread carries bytes between them and a pair of sockets, whose other end is a connection like any other: end of
// input is its half-close, and output that is not read is its back-pressure.
// While they are in use, what the program itself reads or prints goes elsewhere: input is empty, and output goes to
// standard error, so that a print in a handler does not break the stream.
#pragma once

#include <thread>

#include "transport/setup.hpp"

namespace wirecall::transport {

/// Carries bytes between two descriptors and a socket.
class Pump {
 public:
  /// Reads from `input` until it ends, and writes to `output`, which both live until the pump is gone.
  Pump(int input, int output);
  ~Pump() { static_cast<void>(end()); }
  Pump(Pump&&) = delete;

  /// Delivers what had been sent, for a while, when the other side reads it; reads no more. Returns 0, or the errno
  /// with which the output was refused; that its reader has left is no refusal.
  int end() noexcept;

  /// The end of the connection that the loop is to have; once.
  [[nodiscard]] int take_socket() noexcept { return theirs_.release(); }

 private:
  void run();

  int input_;
  int output_;
  Descriptor ours_;
  Descriptor theirs_;
  Descriptor stop_;
  int refused_ = 0;  // the thread's until that has ended
  std::thread thread_;
};

/// Has the standard input and output of the process, and gives them back.
class StandardStreams {
 public:
  /// Throws std::runtime_error when they are closed.
  explicit StandardStreams(const Endpoint& endpoint);
  ~StandardStreams();
  StandardStreams(StandardStreams&&) = delete;

  [[nodiscard]] int input() const noexcept { return input_.get(); }
  [[nodiscard]] int output() const noexcept { return output_.get(); }

 private:
  Descriptor input_;
  Descriptor output_;
};

}  // namespace wirecall::transport
