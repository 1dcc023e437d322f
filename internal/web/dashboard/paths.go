package dashboard

// Path is where the dashboard is.
const Path = "/dashboard"

// Where its lists are.
const (
	livePath     = Path + "/live"
	assetsPath   = Path + "/assets"
	uploadsPath  = Path + "/uploads"
	webhooksPath = Path + "/webhooks"
	eventsPath   = Path + "/events"
	settingsPath = Path + "/settings"

	tokensPath       = settingsPath + "/tokens"
	restrictionsPath = settingsPath + "/restrictions"
)
