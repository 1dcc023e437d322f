package shell

// Path is where the dashboard is.
const Path = "/dashboard"

// Where its lists are.
const (
	LivePath     = Path + "/live"
	AssetsPath   = Path + "/assets"
	UploadsPath  = Path + "/uploads"
	WebhooksPath = Path + "/webhooks"
	EventsPath   = Path + "/events"
	SettingsPath = Path + "/settings"

	TokensPath       = SettingsPath + "/tokens"
	RestrictionsPath = SettingsPath + "/restrictions"
)
