// See call.hpp.
#include "cli/call.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <expected>
#include <fmt/core.h>
#include <memory>
#include <stdexcept>
#include <utility>

#include "base/printable.hpp"
#include "cli/arguments.hpp"
#include "cli/terminal.hpp"
#include "wirecall/client.hpp"
#include "wirecall/error.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::cli {

namespace {

std::expected<std::string, std::string> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "rb"), &std::fclose};
  std::string content;
  if (file != nullptr) {
    char block[64 * 1024];
    while (const std::size_t bytes = std::fread(block, 1, sizeof block, file.get())) content.append(block, bytes);
    if (std::ferror(file.get()) == 0) return content;
  }
  return std::unexpected(fmt::format("cannot read the file {}: {}", path, std::strerror(errno)));
}

// The exit status for an error that this process made: no response came, or none that can be read.
int exit_of(const Error& error) {
  if (error.code() == static_cast<int>(ErrorCode::timeout)) return kTimeout;
  if (error.code() == static_cast<int>(ErrorCode::provider_lost)) return kCannotConnect;
  return kRpcError;
}

std::string line_of(const Error& error) {
  std::string line = fmt::format("{} {}", bold(fmt::format("error {}:", error.code())), printable(error.message()));
  if (!error.data().empty()) line += " " + printable(error.data());
  return line;
}

int print(std::string_view json) {
  std::fwrite(json.data(), 1, json.size(), stdout);
  std::fputc('\n', stdout);
  if (std::fflush(stdout) == 0) return kSuccess;
  complain(fmt::format("cannot write to stdout: {}", std::strerror(errno)));
  return kRpcError;
}

}  // namespace

int call(const CallOptions& options) {
  const auto params = params_of(options.words, read_file);
  if (!params) {
    complain(params.error());
    return kUsage;
  }
  try {
    static_cast<void>(to_json(options.method));
  } catch (const Error&) {
    complain("METHOD is not valid UTF-8: " + printable(options.method));
    return kUsage;
  }
  ClientOptions client_options;
  if (options.timeout) {
    client_options.call_timeout_ms = static_cast<std::uint32_t>(options.timeout->count());
    client_options.connect_timeout_ms = client_options.call_timeout_ms;
  }
  for (const std::string& url : options.urls) {
    try {
      Client client{url, client_options};
      client.connect();
      const auto response = client.call_for_response(options.method, *params);
      if (!response) {
        fmt::print(stderr, "{}\n", line_of(response.error()));
        return exit_of(response.error());
      }
      const auto& result = response->result;
      if (options.raw) {
        const int written = print(response->json);
        return written != kSuccess || result ? written : kRpcError;
      }
      if (result) return print(*result);
      fmt::print(stderr, "{}\n", line_of(result.error()));
      return kRpcError;
    } catch (const ConnectionError& error) {
      complain(printable(error.what()));
    } catch (const std::invalid_argument& error) {
      complain(printable(error.what()));
      return kUsage;
    }
  }
  return kCannotConnect;
}

}  // namespace wirecall::cli
