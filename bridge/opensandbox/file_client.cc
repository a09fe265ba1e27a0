// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/file_client.h"

#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/random.h"
#include "bridge/base/status_macros.h"
#include "bridge/opensandbox/file_error.h"
#include "bridge/opensandbox/file_own.h"
#include "bridge/opensandbox/file_script.h"
#include "bridge/opensandbox/file_stat.h"
#include "bridge/opensandbox/remote_command.h"

namespace bridge {
namespace {

constexpr absl::Duration kCleanUp = absl::Seconds(15);
constexpr unsigned kReadableByOthers = 0004;
constexpr unsigned kSpecialBits = 07000;

using Lines = std::vector<std::string>;

absl::Status IsADirectory(std::string_view what) {
  return MakeError(ErrorReason::ERROR_REASON_IS_A_DIRECTORY,
                   "to " + std::string(what) + " failed: a directory is at the path");
}

absl::Status NotAFile(std::string_view what) {
  return MakeError(ErrorReason::ERROR_REASON_PATH_EXISTS,
                   "to " + std::string(what) + " failed: something that is no file is at the path");
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

Task<absl::Status> CheckPrecondition(SandboxHandle sandbox, const FileWrite& write,
                                     const std::optional<FileInfo>& there) {
  const absl::Status failed = NotAsExpected();
  if (write.if_absent) co_return there ? failed : absl::OkStatus();
  if (write.if_modified_at != absl::InfinitePast()) {
    co_return there && there->modified_at == write.if_modified_at ? absl::OkStatus() : failed;
  }
  if (write.if_sha256.empty()) co_return absl::OkStatus();
  if (!there) co_return failed;
  CO_ASSIGN_OR_RETURN(
      std::unique_ptr<FileReader> reader,
      co_await FileReader::OpenStock(sandbox, *there, there->path, 0, std::nullopt));
  Sha256 digest;
  std::string chunk;
  bool more = true;
  while (more) {
    CO_ASSIGN_OR_RETURN(more, co_await reader->Next(&chunk));
    if (more) digest.Update(chunk);
  }
  co_return digest.FinishHex() == write.if_sha256 ? absl::OkStatus() : failed;
}

// Whether the directory of a new file has to be made first. A daemon would make it without a word.
Task<absl::StatusOr<bool>> LacksDirectory(SandboxHandle sandbox, std::string directory,
                                          bool create) {
  if (directory == "/") co_return false;
  const absl::StatusOr<FileInfo> there = co_await StatFile(sandbox, directory, /*follow=*/true);
  if (there.ok()) co_return false;
  if (create && ReasonOf(there.status()) == ErrorReason::ERROR_REASON_PATH_NOT_FOUND) {
    co_return true;
  }
  co_return WithoutDirectory(there.status(), "write a file");
}

// Whoever drops this with a script in it has that run in the background.
struct HalfMove {
  SandboxHandle sandbox;
  std::string undo;

  ~HalfMove() {
    if (undo.empty()) return;
    sandbox.background.Start(
        "take back half a move",
        [sandbox = sandbox.ForBackground(kCleanUp), undo = std::move(undo)]() -> Task<void> {
          (void)co_await RunScript(sandbox.client, sandbox.context, sandbox.daemon, undo, nullptr);
        });
  }
};

// A lister that has begun.
Task<absl::StatusOr<std::unique_ptr<FileLister>>> ListStock(SandboxHandle sandbox, std::string path,
                                                            int depth) {
  const std::string shown = path;
  CO_ASSIGN_OR_RETURN(FileInfo info, co_await StatFile(sandbox, path, /*follow=*/false));
  if (info.type == FileType::kSymlink) {
    CO_ASSIGN_OR_RETURN(path, co_await ResolveLinks(sandbox, path));
    CO_ASSIGN_OR_RETURN(info, co_await StatFile(sandbox, path, /*follow=*/false));
  }
  if (info.type != FileType::kDirectory) {
    co_return MakeError(ErrorReason::ERROR_REASON_NOT_A_DIRECTORY,
                        "to list a directory failed: something else is at the path");
  }
  std::unique_ptr<FileLister> lister;
  if (RoutesTakeLiterally(path)) {
    auto route = std::make_unique<RouteFileLister>(sandbox, path, depth);
    const absl::Status begun = co_await route->Begin();
    if (!begun.ok() && !route->route_missing()) co_return begun;
    if (begun.ok()) lister = std::move(route);
  }
  if (lister == nullptr) {
    lister = std::make_unique<ScriptFileLister>(sandbox, path, depth);
    CO_RETURN_IF_ERROR(co_await lister->Begin());
  }
  if (path != shown) {
    lister = std::make_unique<RenamedFileLister>(std::move(lister), path, shown);
  }
  co_return lister;
}

}  // namespace

std::string NormalPath(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  std::string normal;
  for (const std::string_view part : parts) normal += "/" + std::string(part);
  return normal.empty() ? "/" : normal;
}

Task<absl::StatusOr<FileInfo>> FileClient::Stat(CallContext context, SandboxTarget target,
                                                std::string path, bool follow_symlink) {
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox, co_await Find(std::move(context), std::move(target)));
  CO_ASSIGN_OR_RETURN(FileInfo info, co_await StatFile(sandbox, path, follow_symlink));
  if (info.type == FileType::kSymlink && info.symlink_target.empty()) {
    info.symlink_target = co_await LinkTarget(sandbox, path);
  }
  co_return info;
}

Task<absl::StatusOr<std::unique_ptr<FileLister>>> FileClient::List(CallContext context,
                                                                   SandboxTarget target,
                                                                   std::string path, int depth) {
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox, co_await Find(std::move(context), std::move(target)));
  if (!sandbox.capabilities->file_read) co_return co_await ListStock(sandbox, path, depth);
  auto lister = std::make_unique<RouteFileLister>(sandbox, path, depth);
  CO_RETURN_IF_ERROR(co_await lister->Begin());
  co_return lister;
}

Task<absl::StatusOr<std::unique_ptr<FileReader>>> FileClient::Read(CallContext context,
                                                                   SandboxTarget target,
                                                                   std::string path, int64_t offset,
                                                                   std::optional<int64_t> length) {
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox, co_await Find(std::move(context), std::move(target)));
  if (sandbox.capabilities->file_read) {
    co_return co_await FileReader::OpenOwn(std::move(sandbox), std::move(path), offset, length);
  }
  const std::string shown = path;
  CO_ASSIGN_OR_RETURN(FileInfo info, co_await StatFile(sandbox, path, /*follow=*/false));
  if (info.type == FileType::kSymlink) {
    CO_ASSIGN_OR_RETURN(path, co_await ResolveLinks(sandbox, path));
    CO_ASSIGN_OR_RETURN(info, co_await StatFile(sandbox, path, /*follow=*/false));
  }
  if (info.type == FileType::kDirectory) co_return IsADirectory("read a file");
  if (info.type != FileType::kFile) {
    // A pipe or device would block the daemon, or never end.
    co_return MakeError(ErrorReason::ERROR_REASON_PATH_REJECTED,
                        "to read a file failed: something that is no regular file is at the path");
  }
  co_return co_await FileReader::OpenStock(std::move(sandbox), std::move(info), shown, offset,
                                           length);
}

Task<absl::StatusOr<std::unique_ptr<FileWriter>>> FileClient::Write(CallContext context,
                                                                    SandboxTarget target,
                                                                    FileWrite write) {
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox, co_await Find(std::move(context), std::move(target)));
  if (sandbox.capabilities->file_write) {
    co_return std::make_unique<OwnFileWriter>(std::move(sandbox), std::move(write));
  }
  std::string place = write.path;
  std::optional<FileInfo> there;
  absl::StatusOr<FileInfo> info = co_await StatFile(sandbox, place, /*follow=*/false);
  if (info.ok() && info->type == FileType::kSymlink) {
    if (write.no_follow) co_return IsALink("write a file");
    CO_ASSIGN_OR_RETURN(place, co_await ResolveLinks(sandbox, place));
    info = co_await StatFile(sandbox, place, /*follow=*/false);
  }
  if (info.ok()) {
    if (info->type == FileType::kDirectory) co_return IsADirectory("write a file");
    if (info->type != FileType::kFile) co_return NotAFile("write a file");
    there = *info;
  } else if (ReasonOf(info.status()) != ErrorReason::ERROR_REASON_PATH_NOT_FOUND) {
    co_return info.status();
  }
  CO_RETURN_IF_ERROR(co_await CheckPrecondition(sandbox, write, there));
  const std::string directory = ParentOf(place);
  bool lacks_directory = false;
  if (!there) {
    CO_ASSIGN_OR_RETURN(lacks_directory,
                        co_await LacksDirectory(sandbox, directory, write.create_parents));
  }
  UploadPlace upload{place};
  std::string temporary;
  bool reserve = false;
  if (!RoutesTakeLiterally(place)) {
    CO_ASSIGN_OR_RETURN(upload.alias,
                        co_await AliasFolder::Link(sandbox, write.atomic ? directory : place));
    upload.path = upload.alias->path();
  }
  if (write.atomic) {
    const std::string name = "/.sandbox-bridge-" + RandomHex(16) + ".tmp";
    temporary = (directory == "/" ? "" : directory) + name;
    upload.path = upload.alias == nullptr ? temporary : upload.path + name;
    const unsigned mode = write.mode.value_or(there ? there->mode : 0644);
    // The daemon makes files that everybody can read and narrows them only afterwards.
    reserve = (mode & kReadableByOthers) == 0;
  }
  // From here on it removes what is half made.
  auto writer =
      std::make_unique<StockFileWriter>(sandbox, std::move(write), std::move(place),
                                        std::move(there), std::move(temporary), std::move(upload));
  CO_RETURN_IF_ERROR(co_await writer->Prepare(directory, lacks_directory, reserve));
  co_return std::unique_ptr<FileWriter>(std::move(writer));
}

Task<absl::StatusOr<std::unique_ptr<FileWatcher>>> FileClient::Watch(CallContext context,
                                                                     SandboxTarget target,
                                                                     std::string path,
                                                                     bool recursive,
                                                                     absl::Duration keepalive) {
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox, co_await Find(std::move(context), std::move(target)));
  if (!sandbox.capabilities->watch) {
    co_return MakeError(ErrorReason::ERROR_REASON_UNSUPPORTED_FEATURE,
                        "this sandbox's daemon is a stock one, which cannot watch directories; "
                        "list the directory again and again, or use the bridge's own execd",
                        {.metadata = {{"feature", "files.watch"}}});
  }
  auto watcher = std::make_unique<FileWatcher>(std::move(sandbox), path, recursive, keepalive);
  CO_RETURN_IF_ERROR(co_await watcher->Begin());
  co_return watcher;
}

Task<absl::StatusOr<bool>> FileClient::MakeDirectory(CallContext context, SandboxTarget target,
                                                     std::string path, DirectoryMake make) {
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox, co_await Find(std::move(context), std::move(target)));
  Lines lines;
  const absl::Status status = co_await RunFileScript(
      sandbox, MakeDirectoryScript(path, make.parents, make.mode, make.owner, make.group),
      "make a directory", &lines);
  if (!status.ok()) co_return WithoutDirectory(status, "make a directory");
  co_return !lines.empty();
}

Task<absl::Status> FileClient::Remove(CallContext context, SandboxTarget target, std::string path,
                                      bool recursive) {
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox, co_await Find(std::move(context), std::move(target)));
  co_return co_await RunFileScript(sandbox, RemoveScript(path, recursive), "remove a path",
                                   nullptr);
}

Task<absl::StatusOr<bool>> FileClient::Move(CallContext context, SandboxTarget target,
                                            FileMove move) {
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox, co_await Find(std::move(context), std::move(target)));
  if (sandbox.capabilities->file_move) {
    CO_ASSIGN_OR_RETURN(std::optional<bool> replaced, co_await MoveOwn(sandbox, move));
    if (replaced) co_return *replaced;
    // Between file systems something has to copy.
  }
  const std::string nonce = RandomHex(16);
  HalfMove half{sandbox, UndoMoveScript(move, nonce)};
  Lines lines;
  CO_ASSIGN_OR_RETURN(int code, co_await RunScript(client_, sandbox.context, sandbox.daemon,
                                                   MoveScript(move, nonce), &lines));
  half.undo.clear();  // a script that came to its own end has done this
  CO_RETURN_IF_ERROR(FileScriptError(code, "move a path"));
  co_return !lines.empty() && lines[0] == "replaced";
}

Task<absl::StatusOr<FileInfo>> FileClient::SetAttributes(CallContext context, SandboxTarget target,
                                                         std::string path, AttributeChange change) {
  CO_ASSIGN_OR_RETURN(SandboxHandle sandbox, co_await Find(std::move(context), std::move(target)));
  if (sandbox.capabilities->file_attributes) {
    co_return co_await SetAttributesOwn(std::move(sandbox), std::move(path), std::move(change));
  }
  CO_RETURN_IF_ERROR(co_await RunFileScript(sandbox, SetAttributesScript(path, change),
                                            "change a path's attributes", nullptr));
  if (change.mode && (*change.mode & kSpecialBits) != 0 && !sandbox.capabilities->file_read) {
    // A stock daemon's own description never shows these.
    std::string place = path;
    if (change.follow_symlink) {
      CO_ASSIGN_OR_RETURN(place, co_await ResolveLinks(sandbox, path));
    }
    Lines lines;
    CO_RETURN_IF_ERROR(
        co_await RunFileScript(sandbox, StatScript(place), "describe a path", &lines));
    co_return ParseStatLines(lines, path);
  }
  co_return co_await StatFile(sandbox, path, change.follow_symlink);
}

}  // namespace bridge
