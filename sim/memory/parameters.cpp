#include "parameters.h"

#include <cstdlib>
#include <sstream>

namespace loom {
namespace {

std::string trimmed(const std::string& text) {
  const char* blanks = " \t\r";
  const size_t first = text.find_first_not_of(blanks);
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace

Parameters::Parameters(const std::string& text, const std::string& name) : name_(name) {
  std::istringstream lines(text);
  std::string line, section;
  bool found = false;
  while (std::getline(lines, line)) {
    line = trimmed(line);
    if (line.empty() || line[0] == '#') continue;
    if (line.front() == '[' && line.back() == ']') {
      section = line.substr(1, line.size() - 2);
      found = found || section == name;
      continue;
    }
    if (section != name) continue;
    const size_t equals = line.find('=');
    if (equals == std::string::npos) throw ConfigError("[" + name + "]: no '=' in the line: " + line);
    values_[trimmed(line.substr(0, equals))] = trimmed(line.substr(equals + 1));
  }
  if (!found) throw ConfigError("the memory parameters have no section [" + name + "]");
}

std::string Parameters::word(const std::string& key) const {
  const auto entry = values_.find(key);
  if (entry == values_.end()) throw ConfigError("[" + name_ + "]: " + key + " is missing");
  used_.insert(key);
  return entry->second;
}

double Parameters::number(const std::string& key) const {
  const std::string text = word(key);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end) throw ConfigError("[" + name_ + "]: " + key + " is not a number: " + text);
  return value;
}

uint64_t Parameters::whole(const std::string& key) const {
  const double value = number(key);
  if (value < 0 || value != static_cast<double>(static_cast<uint64_t>(value)))
    throw ConfigError("[" + name_ + "]: " + key + " is not a whole number: " + word(key));
  return static_cast<uint64_t>(value);
}

std::vector<uint64_t> Parameters::list(const std::string& key) const {
  std::istringstream words(word(key));
  std::vector<uint64_t> values;
  for (uint64_t value; words >> value;) values.push_back(value);
  if (!words.eof()) throw ConfigError("[" + name_ + "]: " + key + " is not a list of whole numbers");
  return values;
}

void Parameters::check_all_used() const {
  for (const auto& entry : values_)
    if (!used_.count(entry.first)) throw ConfigError("[" + name_ + "]: unknown key " + entry.first);
}

}  // namespace loom
