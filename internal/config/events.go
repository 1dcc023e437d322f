package config

import (
	"errors"
	"strings"
	"time"
)

// eventOptions are those of commands about events and webhooks.
//
//nolint:gochecknoglobals // a table
var eventOptions = []option{
	{
		name: "type", word: "type,…", help: "Only events of these types.", commands: []string{EventsTail, WebhookCreate},
		apply: func(c *Command, s string) error {
			c.Types = strings.Split(s, ",")
			return nil
		},
	},
	{
		name: "since", word: "time", help: "All events from this time on, such as 2026-01-02T15:04:05Z.", commands: []string{WebhookReplay, Audit},
		apply: func(c *Command, s string) (err error) {
			if c.Replay.Since, err = time.Parse(time.RFC3339, s); err != nil {
				return errors.New("is not a time such as 2026-01-02T15:04:05Z")
			}
			return nil
		},
	},
	{
		name: "event", word: "id", help: "Only the event with this ID.", commands: []string{WebhookReplay},
		apply: func(c *Command, s string) error {
			c.Replay.Event = s
			return nil
		},
	},
	{
		name: "failed", help: "Only failed deliveries; without --since all that are kept.", commands: []string{WebhookReplay},
		apply: func(c *Command, s string) error { return isSwitch(s, &c.Replay.Failed) },
	},
	{
		name: "status", word: "status", help: "Only those that are waiting, delivered, failed or skipped.",
		commands: []string{WebhookDeliveries},
		apply: func(c *Command, s string) error {
			c.Replay.Status = s
			return nil
		},
	},
	{
		name: "object", word: "id", help: "Only events of this object, such as a live stream, and of what is a part of it.", commands: []string{EventsTail},
		apply: func(c *Command, s string) error {
			c.Tail.Object = s
			return nil
		},
	},
}
