/** The media types of exports. */
export const ZIP_TYPE = "application/zip"
export const PDF_TYPE = "application/pdf"
