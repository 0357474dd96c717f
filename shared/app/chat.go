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

// BuiltIn are the names of the tools that Countersign brings. Not every function that answers pages links these tools,
// but each must refuse page tools of such names.
var BuiltIn = append([]string{"ask_user", "calendar_event_create", "calendar_event_delete",
	"calendar_events_list", "docker.cleanupGroupContainers", "docker.createContainer", "docker.destroyContainer",
	"docker.executeScript", "docker.getAllSourceFiles", "docker.listContainers", "docker.readFileInContainer",
	"github.configureGitClientInContainer", "gmail_search", "gmail_send", "google_web_search", "run_command",
	"run_shell_command", "task_complete", "web_fetch"}, repositoryTools...)

// serveChat adds the page agent over the loop, which carries out its actions. Without a model there is none.
func serveChat(b *Builder) error {
	if b.Env.Model == nil {
		return nil
	}
	key, err := chatKey(b.Config)
	if err != nil {
		return err
	}
	names := slices.Concat(b.API.Loop.Tools.Names(), BuiltIn, ownNames)
	b.API.Chat = &chat.Chat{Core: b.API.Loop, Ledger: b.API.Records, Taken: chat.NamesOf(names...), Key: key,
		Audience: b.Config.AuthAudience}
	return nil
}

// chatKeyFile is the name of the key's file in DATA_DIR where CHAT_KEY is not set: 32 random bytes, readable by their
// owner alone.
const chatKeyFile = "chat-key"

// chatKey returns the configured key, or on one machine the one in the data directory, which it makes if there is none.
func chatKey(cfg config.Config) (chat.Key, error) {
	if cfg.ChatKey.IsSet() {
		return cfg.ChatKeys(), nil
	}
	key, err := keyfile.Read(cfg.DataDir, chatKeyFile, func(w io.Writer) error {
		_, err := io.CopyN(w, rand.Reader, 32)
		return err
	})
	if err == nil && len(key) < 32 {
		err = fmt.Errorf("%s holds %d bytes and no key; delete it to have a new one made",
			filepath.Join(cfg.DataDir, chatKeyFile), len(key))
	}
	return chat.Key{key}, err
}
