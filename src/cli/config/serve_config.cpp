#include "cli/config/serve_config.hpp"

#include "cli/config/config_file.hpp"
#include "cli/files.hpp"

namespace wirecall::cli {

static std::expected<Options, std::string> options_of_file(const std::string& path) {
  const auto text = read_small_file(path, kConfigBytesMax);
  if (!text) return std::unexpected(text.error());
  auto options = options_of_toml(*text);
  if (!options) return std::unexpected(path + ": " + options.error());
  return options;
}

ServeConfig::ServeConfig(CLI::App& command) : flags_(command) {
  command.add_option("-c,--config", path_, "Options as TOML, which flags override; --print-config writes such a file")
      ->type_name("FILE");
}

std::expected<Options, std::string> ServeConfig::load() const {
  if (flags_.given("listen") && (flags_.given("host") || flags_.given("port"))) {
    return std::unexpected("--listen says where to listen, so leave --host and --port out");
  }
  Options options;
  if (!path_.empty()) {
    auto of_file = options_of_file(path_);
    if (!of_file) return of_file;
    options = *std::move(of_file);
  }
  if (flags_.given("host") || flags_.given("port")) options.listen.clear();
  const auto applied = flags_.apply(options);
  if (!applied) return std::unexpected(applied.error());
  return options;
}

}  // namespace wirecall::cli
