package app

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/countersign-run/countersign/shared/chat"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/tool"
)

// openChat makes the page agent over the loop, which carries out its actions.
func openChat(cfg config.Config, l *loop.Loop) (*chat.Chat, error) {
	key, err := chatKey(cfg)
	if err != nil {
		return nil, err
	}
	p := l.Profile
	p.MaxModelCalls = cfg.ChatMaxModelCalls
	actions := tool.Set{}
	for name, t := range l.Tools {
		if strings.HasPrefix(name, chat.ActionPrefix) {
			actions[name] = t
		}
	}
	return &chat.Chat{Model: l.Model, Core: l, Actions: actions, Key: key, Agent: cfg.AuthAudience, Prefix: cmp.Or(cfg.Persona, cfg.SystemPrompt), Profile: p, Log: l.Log, Now: l.Now, Random: l.Random}, nil
}

// chatKeyFile is the name of the key within DATA_DIR where CHAT_KEY is not set: 32 random bytes, readable by its owner alone.
const chatKeyFile = "chat-key"

// chatKey is the configured key, or on one machine the one that is kept in the data directory.
func chatKey(cfg config.Config) (chat.Key, error) {
	if cfg.ChatKey.IsSet() {
		return cfg.ChatKeys(), nil
	}
	path := filepath.Join(cfg.DataDir, chatKeyFile)
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeChatKey(cfg.DataDir, path); err != nil {
			return nil, fmt.Errorf("make the key of the chat: %w", err)
		}
		key, err = os.ReadFile(path)
	}
	if err == nil && len(key) < 32 {
		err = fmt.Errorf("%s holds %d bytes and no key; delete it to have a new one made", path, len(key))
	}
	return chat.Key{key}, err
}

// makeChatKey writes beside the path and then links: a half-written key is never seen, and an existing one never replaced.
func makeChatKey(dir, path string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, chatKeyFile+".*") // CreateTemp makes it 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(key)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
