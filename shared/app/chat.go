package app

import (
	"crypto/rand"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/countersign-run/countersign/shared/base/keyfile"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/chat"
)

// BuiltIn are the names of Countersign's own tools. A function that serves pages must refuse page tools with these
// names, even if it does not link the tools.
var BuiltIn = append([]string{"ask_user", "calendar_event_create", "calendar_event_delete", "calendar_event_update",
	"calendar_events_list", "calendar_freebusy", "calendar_respond", "docker.cleanupGroupContainers",
	"docker.createContainer", "docker.destroyContainer", "docker.editFile", "docker.executeScript",
	"docker.fetchDependencies", "docker.getAllSourceFiles", "docker.listContainers", "docker.readFileInContainer",
	"download_file", "forget",
	"github.configureGitClientInContainer", "gmail_draft", "gmail_modify", "gmail_read", "gmail_search", "gmail_send",
	"google_web_search", "remember", "run_command", "run_commands", "run_shell_command", "task_complete",
	"upload_file", "web_fetch"}, repositoryTools...)

// serveChat adds the page agent, whose actions run through the loop. Without a model there is no page agent.
func serveChat(b *Builder) error {
	if b.Env.Model == nil {
		return nil
	}
	key, err := chatKey(b.Config)
	if err != nil {
		return err
	}
	names := slices.Concat(b.API.Loop.Tools.Names(), BuiltIn, ownNames)
	b.API.Chat = &chat.Chat{Core: b.API.Loop, Ledger: b.API.Records,
		Taken: chat.NamesOf(names...), Key: key, Audience: b.Config.AuthAudience}
	return nil
}

// ChatKeyFile is the name of the key file in DATA_DIR that replaces CHAT_KEY: 32 random bytes, readable only by their
// owner.
const ChatKeyFile = "chat-key"

// chatKey returns the configured key, or on one machine the key in the data directory, which it creates if necessary.
func chatKey(cfg config.Config) (chat.Key, error) {
	if cfg.ChatKey.IsSet() {
		return cfg.ChatKeys(), nil
	}
	key, err := keyfile.Read(cfg.DataDir, ChatKeyFile, func(w io.Writer) error {
		_, err := io.CopyN(w, rand.Reader, 32)
		return err
	})
	if err == nil && len(key) < 32 {
		err = fmt.Errorf("%s holds %d bytes and is not a key; delete it, and a new one will be created",
			filepath.Join(cfg.DataDir, ChatKeyFile), len(key))
	}
	return chat.Key{key}, err
}
