// The parameter text: one section a memory, `key = value` lines; every key must be there and be used.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace loom {

struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Parameters {
 public:
  // Takes the section `name` out of `text`; throws ConfigError when it is not there or a line is malformed.
  Parameters(const std::string& text, const std::string& name);

  std::string word(const std::string& key) const;
  double number(const std::string& key) const;
  uint64_t whole(const std::string& key) const;
  std::vector<uint64_t> list(const std::string& key) const;

  // Throws ConfigError naming a key that nothing asked for: it was misspelt, or belongs to another model.
  void check_all_used() const;

 private:
  std::string name_;
  std::map<std::string, std::string> values_;
  mutable std::set<std::string> used_;
};

}  // namespace loom
