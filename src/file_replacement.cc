#include "file_replacement.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace ample {
namespace {

namespace fs = std::filesystem;

// model.ample.0123456789abcdef.tmp
constexpr std::string_view kEnding = ".tmp";
constexpr std::size_t kRandomDigits = 16;

[[noreturn]] void cannot_write(const std::string& path, const std::string& reason) {
  throw FileError(fmt::format("{}: cannot write: {}", path, reason));
}

/// Where a chain of links ends, be there a file or not yet.
std::string without_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel
  fs::path place = path;
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code error;
    const fs::path next = fs::read_symlink(place, error);
    if (error) return place.string();
    place = place.parent_path() / next;  // an absolute `next` stands alone
  }
  cannot_write(path, std::strerror(ELOOP));
}

std::string random_digits() {
  std::uint64_t bits = 0;
  while (::getrandom(&bits, sizeof bits, 0) != sizeof bits) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
  }
  return fmt::format("{:0{}x}", bits, kRandomDigits);
}

fs::path folder_of(const std::string& target) {
  const fs::path parent = fs::path(target).parent_path();
  return parent.empty() ? "." : parent;
}

bool is_named_like_temporary(const std::string& name, const std::string& target_name) {
  return name.size() == target_name.size() + 1 + kRandomDigits + kEnding.size() &&
         name.starts_with(target_name + ".") && name.ends_with(kEnding) &&
         name.find_first_not_of("0123456789abcdef", target_name.size() + 1) ==
             name.size() - kEnding.size();
}

/// Removes what killed programs left beside the target. Whoever still writes holds a lock. That
/// something cannot be removed is no reason not to write.
void remove_leftovers(const std::string& target) {
  const std::string target_name = fs::path(target).filename().string();
  std::error_code error;
  for (fs::directory_iterator entry(folder_of(target), error), end; !error && entry != end;
       entry.increment(error)) {
    if (!is_named_like_temporary(entry->path().filename().string(), target_name)) continue;
    const int file = ::open(entry->path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) continue;
    struct stat status = {};
    const bool ours =
        ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
    if (ours && ::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlink(entry->path().c_str());
    ::close(file);
  }
}

/// Locks a file that was just opened. False if somebody else has it (errno is EWOULDBLOCK), or has
/// removed or renamed it in the meantime. A file system without locks has nobody who could remove
/// it either.
bool lock_file(int descriptor, const std::string& name) {
  errno = 0;
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  struct stat mine = {};
  struct stat named = {};
  return ::fstat(descriptor, &mine) == 0 && ::lstat(name.c_str(), &named) == 0 &&
         mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

// Without this a power cut may undo the rename. The new file is complete and in place by now, and
// some file systems cannot do it, so a refusal is no failure to write.
void sync_folder_of(const std::string& target) {
  const int folder = ::open(folder_of(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);
  ::close(folder);
}

}  // namespace

FileReplacement::FileReplacement(const std::string& path) : FileReplacement(path, Kind::fresh) {}

FileReplacement FileReplacement::resume(const std::string& path) {
  return FileReplacement(path, Kind::resumed);
}

FileReplacement::FileReplacement(const std::string& path, Kind kind)
    : path_(path), target_(without_links(path)), kind_(kind) {
  struct stat status = {};
  if (::stat(target_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    cannot_write(path_, "it is not a regular file");
  }
  kind == Kind::fresh ? open_fresh() : open_part();
}

FileReplacement::~FileReplacement() {
  const bool keep = committed_ || (kind_ == Kind::resumed && size_ > 0);
  if (!keep) ::unlink(temporary_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileReplacement::open_fresh() {
  remove_leftovers(target_);
  // Nobody may read what the old file kept from them, not even for a moment.
  struct stat status = {};
  const bool exists = ::stat(target_.c_str(), &status) == 0;
  const mode_t mode = exists ? 0600 : 0666;
  for (;;) {
    temporary_ = fmt::format("{}.{}{}", target_, random_digits(), kEnding);
    descriptor_ =
        ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (descriptor_ < 0 && errno == EEXIST) continue;
    if (descriptor_ < 0) fail(errno);
    if (lock_file(descriptor_, temporary_)) return;
    ::close(descriptor_);  // taken for a leftover in the moment before it was locked
  }
}

void FileReplacement::open_part() {
  temporary_ = target_ + ".part";
  for (;;) {
    descriptor_ =
        ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail(errno);
    struct stat status = {};
    // A second name would be another file that is written to.
    const bool plain =
        ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink <= 1;
    if (!plain) {
      ::close(descriptor_);
      cannot_write(path_, temporary_ + " is not a plain file");
    }
    if (lock_file(descriptor_, temporary_)) {
      size_ = static_cast<std::uint64_t>(std::max<off_t>(0, ::lseek(descriptor_, 0, SEEK_END)));
      return;
    }
    const bool busy = errno == EWOULDBLOCK;
    ::close(descriptor_);  // else another has just finished it
    if (busy) cannot_write(path_, "another program is writing it");
  }
}

void FileReplacement::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) fail(errno);
    if (count <= 0) continue;
    bytes.remove_prefix(static_cast<std::size_t>(count));
    size_ += static_cast<std::uint64_t>(count);
  }
}

void FileReplacement::clear() {
  if (::ftruncate(descriptor_, 0) != 0 || ::lseek(descriptor_, 0, SEEK_SET) < 0) fail(errno);
  size_ = 0;
}

void FileReplacement::keep_owner_and_mode() {
  struct stat old = {};
  if (::stat(target_.c_str(), &old) != 0) return;
  struct stat own = {};
  if (::fstat(descriptor_, &own) != 0) fail(errno);
  mode_t mode = old.st_mode & 07777;
  constexpr auto kSameOwner = static_cast<uid_t>(-1);
  constexpr auto kSameGroup = static_cast<gid_t>(-1);
  const bool owner = own.st_uid == old.st_uid || ::fchown(descriptor_, old.st_uid, kSameGroup) == 0;
  const bool group = own.st_gid == old.st_gid || ::fchown(descriptor_, kSameOwner, old.st_gid) == 0;
  // Where the file goes to others, they get no rights that were meant for those before.
  if (!owner || !group) mode &= 0777;
  if (!group) mode = (mode & ~mode_t{070}) | (mode & ((mode & 07) << 3));
  if (::fchmod(descriptor_, mode) != 0) fail(errno);
}

void FileReplacement::commit() {
  keep_owner_and_mode();
  if (::fsync(descriptor_) != 0) fail(errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  committed_ = true;
  sync_folder_of(target_);
}

int FileReplacement::release() { return std::exchange(descriptor_, -1); }

void FileReplacement::fail(int error) const { cannot_write(path_, std::strerror(error)); }

void check_replaceable(const std::string& path) { const FileReplacement probe(path); }

}  // namespace ample
