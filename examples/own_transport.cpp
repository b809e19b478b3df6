// A transport of one's own: a server and a client that reach each other by a pair of pipes, one for each direction.
// What is between them could as well be a serial line, or the socket of another library.
#include <cerrno>
#include <fcntl.h>
#include <iostream>
#include <signal.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <wirecall/client.hpp>
#include <wirecall/server.hpp>
#include <wirecall/transport.hpp>

class Pipes final : public wirecall::Transport {
 public:
  Pipes(int in, int out) : in_(in), out_(out) {}
  ~Pipes() override {
    ::close(in_);
    end_writing();
  }
  [[nodiscard]] int read_descriptor() const noexcept override { return in_; }
  [[nodiscard]] int write_descriptor() const noexcept override { return out_; }
  [[nodiscard]] std::expected<std::size_t, int> read(std::span<char> to) override {
    return counted(::read(in_, to.data(), to.size()));
  }
  [[nodiscard]] std::expected<std::size_t, int> write(std::string_view bytes) override {
    return counted(::write(out_, bytes.data(), bytes.size()));
  }
  void end_writing() override {
    if (out_ >= 0) ::close(std::exchange(out_, -1));
  }

 private:
  static std::expected<std::size_t, int> counted(ssize_t count) {
    if (count < 0) return std::unexpected{errno};
    return static_cast<std::size_t>(count);
  }
  int in_;
  int out_;
};

int main() {
  ::signal(SIGPIPE, SIG_IGN);  // what is written to a pipe that nobody reads is an error of that connection alone
  wirecall::Server server;
  server.method("subtract", [](int a, int b) { return a - b; });
  std::thread serving{[&] { server.run(); }};

  // The name says what is spoken, as JSON texts, and stands in errors; how the server is reached is ours.
  wirecall::ClientOptions options;
  options.connect = [&](const wirecall::Endpoint&, std::chrono::milliseconds) {
    int there[2];
    int back[2];
    if (::pipe2(there, O_CLOEXEC | O_NONBLOCK) != 0 || ::pipe2(back, O_CLOEXEC | O_NONBLOCK) != 0)
      throw std::runtime_error{"no pipe can be had"};
    server.serve(std::make_unique<Pipes>(there[0], back[1]));
    return std::make_unique<Pipes>(back[0], there[1]);
  };
  int difference = 0;
  {
    wirecall::Client client{"inproc://pipes", options};
    difference = client.call<int>("subtract", 42, 23);
    std::cout << "by pipes: " << difference << '\n';
  }
  server.stop();
  serving.join();
  return difference == 19 ? 0 : 1;
}
